"""One seed of one trial: it tells the study its accuracy after every task, and ends where the study says so."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from droptop.errors import DroptopError
from droptop.results.metrics import accuracy
from droptop.runs.folder import seed_folder
from droptop.sweeps.tuning.study import Teller
from droptop.system.files import write_json
from droptop.training.seed_run import SeedRun
from droptop.training.stepping import Steps

PRUNED = "pruned.json"  # in the folder of a seed that was ended early: why


class Pruned(DroptopError):
    """Say that a trial is not worth its end."""


class TrialRun(SeedRun):
    """Train the seed of a trial, whose run folder is OUT/runs/trial-NUMBER."""

    def work(self) -> Iterator[None]:
        """Train to the end, or to where the study says that it is enough."""
        if was_pruned(self.run, self.seed):
            return
        self.teller = Teller(self.run.parent.parent, number_of(self.run))
        try:
            yield from super().work()
        except Pruned as end:
            write_pruned(self.run, self.seed, str(end))

    def evaluate_block(self, steps: Steps, step: int, task: int, task_ends: bool) -> dict[str, Any]:
        """Return what the last line of a block has, and tell the study of a task that ends."""
        line = super().evaluate_block(steps, step, task, task_ends)
        if task_ends:
            test = next(iter(steps.stream.tests))
            tasks = len(steps.stream.tasks)
            if self.teller.after(task, accuracy(line["eval"][test]), tasks):
                raise Pruned(f"below the median of other trials after task {task + 1} of {tasks}")
        return line


def number_of(run: Path) -> int:
    """Return the number of the trial that a run folder is of."""
    return int(run.name.partition("-")[2])


def was_pruned(run: Path, seed: int) -> bool:
    """Return whether a seed was ended early."""
    return (seed_folder(run, seed) / PRUNED).exists()


def write_pruned(run: Path, seed: int, why: str) -> None:
    """Note that a seed was ended early."""
    place = seed_folder(run, seed)
    place.mkdir(parents=True, exist_ok=True)
    write_json(place / PRUNED, {"why": why})
