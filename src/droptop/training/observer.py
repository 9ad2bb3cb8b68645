"""The observer of many seeds: one interface for progress bars, for the index of a study, and for nobody."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from droptop.runs.config import Config
from droptop.system.short_names import short_name

if TYPE_CHECKING:
    from droptop.training.seed_run import SeedRun
    from droptop.training.workers import Failure


class SeedProgress(NamedTuple):
    """Say how far a seed is."""

    step: int
    steps: int
    task: int
    tasks: int
    loss: float


@dataclass(frozen=True)
class Job:
    """Name one seed of one run, which a worker trains."""

    config: Config
    run: Path
    seed: int
    kind: "type[SeedRun] | None" = None  # what trains it, unless the usual SeedRun does
    name: str = ""  # what people call it; by default its debiasing and its seed

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", f"{short_name(self.config.options.debias)} seed {self.seed}")


class Observer:
    """Hear what goes on. Every method does nothing here; a subclass overrides those it cares for."""

    def begin(self, total: int, done: int = 0) -> None:
        """Hear how many jobs there are, and how many of them are done already."""

    def progress(self, job: Job, progress: SeedProgress) -> None:
        """Hear how far a job is, a few times per second."""

    def done(self, job: Job) -> None:
        """Hear that a job is done."""

    def failed(self, job: Job, failure: "Failure") -> None:
        """Hear that a job failed and is not tried again."""

    def note(self, text: str) -> None:
        """Hear what a person might want to read."""
