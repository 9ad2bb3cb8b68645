"""Measure whether a long run grows: memory, time per step and checkpoints over 200,000 steps of a tiny net.

    python benchmarks/long.py benchmarks/cpu/long.csv docs/images/long.png 200000

Writes a row per 2,000 steps and a picture of them. One seed of ER with DropTop trains in this process, as in a worker,
on made-up images of 8 px. Milliseconds are of this process's CPU time, so that other work on the machine hardly counts.
"""

import csv
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn

import droptop
from droptop.figures.style import DEBIASED, STYLE
from droptop.runs.config import configure
from droptop.training.observer import SeedProgress
from droptop.training.seed_run import SeedRun

EVERY, BATCH, CLASSES = 2000, 4, 4
STEPS = "DROPTOP_LONG_STEPS"  # in the environment: a stream is told its seed alone
PANELS = {
    "cpu_ms": "CPU time per step (ms)",
    "rss_mib": "memory (MiB)",
    "checkpoint_ms": "a checkpoint (ms)",
    "checkpoint_kib": "a checkpoint (KiB)",
    "metrics_mib": "metrics.jsonl (MiB)",
    "folder_mib": "the whole folder (MiB)",
}


def stream(seed: int) -> droptop.Stream:
    """Return noise in two tasks of two classes, as long as is asked for."""
    count = BATCH * int(os.environ[STEPS])
    images = torch.randint(0, 256, (count, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    tests = {"test": (images[:64], torch.arange(64) % CLASSES)}
    labels = torch.arange(count) % CLASSES
    return droptop.stream_from((images, labels), tests, classes=list("abcd"), tasks=2, seed=seed)


class Net(nn.Module):
    """Take images to logits by two small convolutions."""

    def __init__(self, classes: int = CLASSES) -> None:
        super().__init__()
        self.stem, self.body = nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 8, 3, 2, 1)
        self.fc = nn.Linear(8, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of a batch."""
        logits: Tensor = self.fc(self.body(self.stem(x).relu()).relu().mean((2, 3)))
        return logits


class Rows:
    """Hear how far a seed is, and take a row of measurements every so many steps."""

    def __init__(self, out: Path) -> None:
        self.out, self.rows, self.cpu = out, list[dict[str, float]](), time.process_time()
        self.run: SeedRun | None = None

    def __call__(self, progress: SeedProgress) -> None:
        """Measure, if it is time."""
        if progress.step == 0 or progress.step % EVERY:
            return
        assert self.run is not None
        sizes = {path: path.stat().st_size for path in self.out.rglob("*") if path.is_file()}
        saved = [size for path, size in sizes.items() if path.parent.name == "checkpoints"]
        self.rows.append(
            {
                "step": progress.step,
                "cpu_ms": round(1000 * (time.process_time() - self.cpu) / EVERY, 4),
                "rss_mib": int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20,
                "checkpoint_ms": round(1000 * self.run.checkpoints.cost, 2),
                "checkpoint_kib": sum(saved) / max(1, len(saved) // 2) / 1024,
                "metrics_mib": (self.out / "seed-0/metrics.jsonl").stat().st_size / 2**20,
                "folder_mib": sum(sizes.values()) / 2**20,
            }
        )
        self.cpu = time.process_time()


def measure(steps: int) -> list[dict[str, float]]:
    """Train one seed for so many steps; return a row per `EVERY` of them."""
    os.environ[STEPS] = str(steps)
    here = str(Path(__file__).resolve())
    names = {"data": f"{here}:stream", "method": "er", "debias": "droptop", "model": f"{here}:Net"}
    sizes = {"batch": BATCH, "memory": 40, "memory_batch": BATCH, "lr": 0.001, "augment": "none"}
    config = configure(**names, first="stem", last="body", checkpoint_seconds=1.0, **sizes)
    with tempfile.TemporaryDirectory() as place:
        rows = Rows(Path(place))
        rows.run = SeedRun(config, Path(place), 0, rows)
        rows.run()
    return rows.rows


def draw(rows: list[dict[str, float]], picture: str) -> None:
    """Draw every column over steps, from zero, since a curve that is flat shall look so."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 3, figsize=(9, 4.4), layout="constrained", sharex=True)
        for place, (name, title) in zip(axes.flat, PANELS.items()):
            place.plot([row["step"] / 1000 for row in rows], [row[name] for row in rows], color=DEBIASED)
            place.set(title=title, ylim=(0, 1.15 * max(row[name] for row in rows)))
        for place in axes[1]:
            place.set_xlabel("thousand steps")
        figure.savefig(picture, dpi=120)


def main(table: str, picture: str, steps: str) -> None:
    """Measure, and write the table and the picture."""
    torch.set_num_threads(1)
    rows = measure(int(steps))
    with Path(table).open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: round(value, 3) for name, value in row.items()} for row in rows)
    draw(rows, picture)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"at most {most:,.0f} MiB, with the result, for which the whole metrics.jsonl is read once more")


if __name__ == "__main__":
    main(*sys.argv[1:])
