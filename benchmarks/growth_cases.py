"""What benchmarks/growth.py measures: a case is what runs, and the quantity that it grows with.

A case is made for one size after another and gives what is to be timed. Nets are two small convolutions and images have
8 px, so that what is measured is hardly the net; the memory is full.
"""

import hashlib
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import droptop
from droptop.errors import WorkerDied
from droptop.results.seed_result import seed_result
from droptop.runs.folder import read_metrics, seed_folder
from droptop.sweeps.sweep import Driver, Pack, sweep
from droptop.system.files import write_json
from droptop.training.observer import Job, Observer
from droptop.training.seed_manifest import write_manifest
from droptop.training.workers import Failure

REPLAY = ("er", "derpp", "mir", "gss", "aser", "er-ace", "scr", "pcr", "mkd")
OWN_NET = ("scr", "pcr")  # they take a net of droptop's: a ResNet-18 of width 1
BATCH, CHUNK, SEEDS = 32, 1000, 5
FAILURE = Failure(WorkerDied, "out of luck", "")
MILLION = "memory of 1,000 classes"
Work = Callable[[], Any]


class Case(NamedTuple):
    """Name what runs, what it grows with, and what makes it for a size."""

    what: str
    over: str
    sizes: tuple[int, ...]
    make: Callable[[int], Work]


class Net(nn.Module):
    """Take images to logits by two small convolutions."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem, self.body = nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 8, 3, 2, 1)
        self.fc = nn.Linear(8, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of a batch."""
        logits: Tensor = self.fc(self.body(self.stem(x).relu()).relu().mean((2, 3)))
        return logits


# -- A learner ---------------------------------------------------------------------------------------------------------


def drawn(count: int, classes: int, side: int) -> tuple[Tensor, Tensor]:
    """Return noise with labels."""
    return torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8), torch.randint(0, classes, (count,))


def learner(method: str, debias: str, memory: int, classes: int = 10, side: int = 8, **options: Any) -> Any:
    """Return a learner whose memory is full of noise."""
    torch.manual_seed(0)
    spec = droptop.Spec((3, side, side), tuple(map(str, range(classes))))
    sizes = {"memory": memory, "memory_batch": BATCH, "augment": "none", "lr": 0.001}
    places = {"width": 1} if method in OWN_NET else {"model": Net(classes), "first": "stem", "last": "body"}
    made = droptop.make_learner(method, spec, debias, 0, **places, **sizes, **options)
    held = made.memory
    for start in range(0, memory, CHUNK):
        x, y = drawn(min(CHUNK, memory - start), classes, side)
        spare = {name: torch.rand(len(y), *rows.shape[1:]).to(rows.dtype) for name, rows in held.rows.items()}
        held.write(torch.arange(start, start + len(y)), spare | {"x": x, "y": y})
    held.seen.fill_(memory)
    return made


def a_step(made: Any, batch: int = BATCH) -> Work:
    """Return what takes one step of a learner."""
    x, y = drawn(batch, len(made.spec.classes), made.spec.shape[1])
    return lambda: made.step(x, y)


def step_of(method: str) -> Iterator[Case]:
    """Yield a step of a method over memory and over classes."""

    def over_memory(size: int) -> Work:
        return a_step(learner(method, "none", size))

    def over_classes(size: int) -> Work:
        return a_step(learner(method, "none", 5000, size))

    yield Case(f"step, {method}", "memory", (500, 1500, 5000, 15000, 50000), over_memory)
    yield Case(f"step, {method}", "classes", (10, 30, 100, 300, 1000), over_classes)


def of_a_million(method: str, size: int, **of_droptop: Any) -> Work:
    """Return a step of a method with 1,000 classes and so many samples; with options of DropTop, its probe."""
    made = learner(method, "droptop" if of_droptop else "none", size, 1000, **of_droptop)
    return made.probe if of_droptop else a_step(made)


def probe(size: int) -> Work:
    """Return a probe of the whole memory."""
    return learner("er", "droptop", size).probe  # type: ignore[no-any-return]


def small_probe(size: int) -> Work:
    """Return a probe of 64 samples."""
    return learner("er", "droptop", size, probe=64).probe  # type: ignore[no-any-return]


def class_means(size: int) -> Work:
    """Return what SCR computes of the whole memory before an evaluation."""
    return learner("scr", "none", size).refresh  # type: ignore[no-any-return]


def over_pixels(size: int) -> Work:
    """Return a step of ER with DropTop on images of so many pixels."""
    return a_step(learner("er", "droptop", 64, side=round(size**0.5), probe=64))


def over_batch(size: int) -> Work:
    """Return the write of a batch to the memory."""
    held = learner("er", "none", 5000).memory
    x, y = drawn(size, 10, 8)
    slots = torch.randint(0, 5001, (size,))
    return lambda: held.write(slots, {"x": x, "y": y})


# -- A stream and a run ------------------------------------------------------------------------------------------------


def stream_over_classes(size: int) -> Work:
    """Return what makes a stream of 100,000 images of 1 px in tasks of two classes."""
    x, y = torch.zeros(100_000, 3, 1, 1, dtype=torch.uint8), torch.arange(100_000) % size
    names = [str(label) for label in range(size)]
    tests = {"test": (x[:1000], y[:1000])}
    return lambda: len(droptop.stream_from((x, y), tests, classes=names, tasks=size // 2, seed=0))


def result_over_classes(size: int) -> Work:
    """Return what makes the result of a seed with tasks of two classes."""
    tasks = tuple((label, label + 1) for label in range(0, size, 2))
    lines = []
    for task in range(len(tasks)):
        n = [50 * (label < 2 * task + 2) for label in range(size)]
        lines.append({"step": task + 1, "task_end": True, "eval": {"test": {"all": {"n": n, "correct": n}}}})
    return lambda: seed_result(lines, tuple(map(str, range(size))), tasks)


def lines_over_steps(place: Path) -> Callable[[int], Work]:
    """Return the case of reading the metrics.jsonl of a run with so many steps."""

    def make(size: int) -> Work:
        folder = seed_folder(place / str(size), 0)
        folder.mkdir(parents=True)
        lines = (f'{{"step": {step}, "task": 0, "loss": 2.302585{step % 97}}}\n' for step in range(1, size + 1))
        (folder / "metrics.jsonl").write_text("".join(lines))
        return lambda: read_metrics(place / str(size), 0)

    return make


def cases(place: Path) -> list[Case]:
    """Return all that is measured in one process; `place` is a folder of its own."""
    memory, classes = (500, 1500, 5000, 15000, 50000), (10, 30, 100, 300, 1000)
    return [
        Case("probe, whole memory", "memory", memory, probe),
        Case("probe, 64 samples", "memory", memory, small_probe),
        Case("class means, scr", "memory", memory[:4], class_means),
        Case("step, er with droptop", "pixels", (64, 256, 1024, 4096, 16384, 65536), over_pixels),
        Case("write to the memory", "batch", (10, 100, 1000, 10000), over_batch),
        Case("stream of 100,000 images", "classes", classes, stream_over_classes),
        Case("result of a seed", "classes", classes[:4], result_over_classes),
        Case("metrics read at the end", "steps", (100, 1000, 10000, 100000), lines_over_steps(place)),
        *(case for method in REPLAY for case in step_of(method)),
        *(Case(f"step, {method}", MILLION, (1_000_000,), partial(of_a_million, method)) for method in REPLAY),
        Case("probe, 64 samples", MILLION, (1_000_000,), lambda size: of_a_million("er", size, probe=64)),
    ]


# -- A study -----------------------------------------------------------------------------------------------------------


class Pretended(Observer):
    """Stand in for an engine that trains: write the folder of every cell as a run would leave it, with made-up figures.

    With `fails`, write what a cell leaves that failed.
    """

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def __call__(self, packs: list[Pack], driver: Driver) -> None:
        """Take packs, as an engine does."""
        for job in (job for pack in packs for job in pack):
            if self.fails:
                driver.failed(job, FAILURE)
            else:
                write_cell(job)
                driver.done(job)


def write_cell(job: Job) -> None:
    """Write the folder of a cell with made-up figures."""
    folder, draw = seed_folder(job.run, job.seed), random.Random(f"{job.run.name} {job.seed}")
    folder.mkdir()
    line = b'{"step": 1, "task": 0, "loss": 2.3}\n'
    (folder / "metrics.jsonl").write_bytes(line)
    (folder / "spec.json").write_text("{}")
    first, then, last = (draw.uniform(20, 90) for _ in range(3))
    figures = {"A_avg": (first + last) / 2, "A_last": last, "F_last": first - then, "A": [first, last]}
    figures["matrix"] = [[first, None], [then, 2 * last - then]]
    result = {"classes": [str(label) for label in range(10)], "tasks": [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]}
    result |= {"tests": {"clean": figures}, "guesses": {"clean": {"chance": 15.0, "constant": 15.0}}}
    result |= {"cue": {"clean": True}} | ({} if job.config.options.debias == "none" else {"kappa": {"0": 5.0}})
    write_manifest(job.config, folder, job.seed, hashlib.sha256(line).hexdigest(), result)
    write_json(folder / "result.json", result)


def write_study(folder: Path, cells: int, seeds: int = SEEDS, fails: bool = False) -> Path:
    """Write a study of so many cells that are all done, or have all failed: two debiasings, as many rates as it takes.

    The real sweep does it, but for training.
    """
    rates = [round(0.001 * (place + 1), 3) for place in range(max(1, cells // seeds // 2))]
    options = {"data": '"fashion"', "method": '"er"', "debias": '["none", "droptop"]', "lr": rates, "seeds": seeds}
    asked = folder.with_suffix(".toml")
    asked.write_text("".join(f"{name} = {value}\n" for name, value in (options | {"limit": 64, "tasks": 2}).items()))
    sweep(asked, folder, Pretended(fails), Observer())
    return folder
