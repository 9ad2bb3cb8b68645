"""`droptop sweep`: runs what is missing of a study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from rich.progress import BarColumn, MofNCompleteColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from tyro.conf import Positional, arg

from droptop.cli import arguments
from droptop.errors import require, typed
from droptop.report.time_left import TimeLeft
from droptop.sweeps.local import local
from droptop.sweeps.sweep import Engine
from droptop.sweeps.sweep import sweep as run_sweep
from droptop.sweeps.trust import trusted_study
from droptop.system.terminal import Console, TextColumn, complain, say
from droptop.training.observer import Job, Observer, SeedProgress
from droptop.training.workers import Failure


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Hold the options of the engine that runs cells; `sweep` and `paper` share them."""

    out: Path
    """Folder of the study, new or one to continue."""
    engine: Literal["local", "ray", "submitit"] = "local"
    """Where cells run: on this machine, on a Ray cluster, or as Slurm jobs."""
    address: str | None = None
    """Address of a Ray cluster; by default one is started on this machine."""
    cpus: float = 1.0
    """Cores per cell, for Ray and Slurm."""
    gpus: float = 0.0
    """GPUs per pack of cells, for Ray (fractions share one) and Slurm."""
    minutes: int = 240
    """Minutes that a Slurm job may take."""
    trust: bool = False
    """Execute Python files that only the study or its folder names, and the folder's copies of those that are gone or
    have changed. Read them first."""

    def __post_init__(self) -> None:
        require(self.cpus > 0, "cpus", "a number above 0", self.cpus)
        require(self.gpus >= 0, "gpus", "a number from 0", self.gpus)
        require(self.minutes >= 1, "minutes", "a number from 1", self.minutes)
        require(self.address is None or self.engine == "ray", "address", "--engine ray beside it", self.engine)

    def start(self) -> Engine:
        """Return the engine, ready to take cells."""
        if self.engine == "ray":
            from droptop.sweeps.on_ray import on_ray

            return on_ray(self.address, self.cpus, self.gpus)
        if self.engine == "submitit":
            from droptop.sweeps.on_slurm import on_slurm

            return on_slurm(self.out, self.minutes, self.cpus, self.gpus)
        return local


@dataclass(frozen=True, kw_only=True)
class SweepOptions(EngineOptions):
    """Hold the options of `droptop sweep`."""

    study: Annotated[
        Positional[Path | None], arg(metavar="STUDY.toml", help="The grid; by default the one in the folder.")
    ] = None


def sweep(args: list[str], console: Console) -> int:
    """Run what is missing of a study; return the exit code, 1 if a cell failed or is not done."""
    options = arguments.read(SweepOptions, args, "droptop sweep", "runs what is missing of a study")
    source, again = options.study or options.out / "study.toml", typed("sweep", *args, "--trust")
    with trusted_study(source, options.out, options.trust, again):
        counts = run_cells(options.study, options.out, options.start(), console, typed("sweep", "--out", options.out))
    console.print(
        f"{counts['done']} cells done, {counts['failed']} failed; {typed('results', options.out)} shows what "
        "they found",
        soft_wrap=True,
    )
    return exit_code(counts, options.out)


def run_cells(study: Path | None, out: Path, engine: Engine, console: Console, again: str) -> dict[str, int]:
    """Run what is missing of a study; return how many cells are in which state.

    Where it is interrupted, the error says that `again` continues.
    """
    try:
        with CellProgress(console) as observer:
            return run_sweep(study, out, engine, observer)
    except KeyboardInterrupt as error:
        if (out / "study.toml").exists():
            error.add_note(f"{again} continues")
        raise


def exit_code(counts: dict[str, int], out: Path) -> int:
    """Return 0 if all cells are done; else say that some are not, and return 1."""
    if not counts["failed"] and not counts["waiting"]:
        return 0
    complain(
        f"droptop: {counts['failed']} cells failed and {counts['waiting']} are not done; "
        f"{typed('status', out)} says why"
    )
    return 1


class CellProgress(Observer):
    """Show a bar in a terminal, and print a line per cell elsewhere."""

    def __init__(self, console: Console) -> None:
        self.live = console.is_terminal
        self.bars = Bars(
            TextColumn("cells"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not self.live,
        )
        self.bar = self.bars.add_task("", total=None)
        self.total = self.finished = self.failures = 0
        self.time_left = TimeLeft(0)

    def __enter__(self) -> "CellProgress":
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def begin(self, total: int, done: int = 0) -> None:
        self.total, self.finished, self.failures, self.time_left = total, done, 0, TimeLeft(total - done)
        self.bars.update(self.bar, total=total, completed=done)
        if not self.live:
            say(f"{done} of {total} cells are done")

    def progress(self, job: Job, progress: SeedProgress) -> None:
        """Say once how much time is left."""
        if text := self.time_left.update(job, progress):
            self.bars.console.print(text)

    def done(self, job: Job) -> None:
        self.finished += 1
        self.show(job, "done")

    def failed(self, job: Job, failure: Failure) -> None:
        self.failures += 1
        self.show(job, "failed")

    def show(self, job: Job, status: str) -> None:
        """Show that a cell is done or has failed."""
        self.bars.update(self.bar, completed=self.finished, description=f"{self.failures} failed" * bool(self.failures))
        if not self.live:
            say(f"{self.finished}/{self.total}  {job.run.name} seed {job.seed}: {status}")

    def note(self, text: str) -> None:
        self.bars.console.print(f"note: {text}")
