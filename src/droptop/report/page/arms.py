"""What a run folder holds so far, finished or not."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from droptop.results.metrics import Evaluation, accuracy_curve, accuracy_matrix
from droptop.results.series import Lines
from droptop.runs.folder import RunFolder, whole_lines, whole_result
from droptop.runs.records import Confusion, Maps, read_confusion, read_maps


@dataclass
class Seed:
    lines: Lines  # none if they were damaged after it was done
    result: dict[str, Any] | None  # once it is done
    confusion: list[Confusion]

    @property
    def classes(self) -> list[str]:
        return self.result["classes"] if self.result else self.confusion[-1].classes if self.confusion else []

    @property
    def tasks(self) -> list[list[int]]:
        """Classes of each task; none while nothing says so."""
        return self.result["tasks"] if self.result else self.confusion[-1].tasks if self.confusion else []

    @cached_property
    def ends(self) -> list[dict[str, Evaluation]]:
        """Evaluations after each task so far."""
        return [line["eval"] for line in self.lines if line.get("task_end")]

    @property
    def tests(self) -> list[str]:
        """Those it was measured on, in the stream's order; none before the first task is over."""
        return list(self.result["tests"] if self.result else self.ends[0] if self.ends else ())

    def curve(self, test: str) -> list[float]:
        if self.result:
            return self.result["tests"][test]["A"]
        return accuracy_curve([tests[test] for tests in self.ends])

    def matrix(self, test: str) -> list[list[float | None]]:
        if self.result:
            return self.result["tests"][test]["matrix"]
        return accuracy_matrix([tests[test] for tests in self.ends], tuple(map(tuple, self.tasks)))


@dataclass
class Arm:
    run: RunFolder
    seeds: dict[int, Seed]  # those that have begun

    @property
    def name(self) -> str:
        """What it is debiased with."""
        return self.run.debias

    @property
    def done(self) -> list[int]:
        return [seed for seed, own in self.seeds.items() if own.result is not None]

    @cached_property
    def maps(self) -> Maps | None:
        """Those of the first seed that recorded any."""
        found = (read_maps(self.run.path, seed) for seed in self.seeds)
        return next((maps for maps in found if maps is not None), None)

    @property
    def tests(self) -> list[str]:
        """Test sets, in the stream's order."""
        return next((own.tests for own in self.seeds.values() if own.tests), [])


def read_arm(run: RunFolder) -> Arm:
    """Return what an arm has measured so far."""
    seeds = {seed: read_seed(run.path, seed) for seed in run.seeds}
    return Arm(run, {seed: own for seed, own in seeds.items() if own.lines or own.result})


def read_seed(run: Path, seed: int) -> Seed:
    result = whole_result(run, seed)  # before its metrics, which are all there by then
    lines = whole_lines(run, seed)
    if result is not None and sum("task_end" in line for line in lines) < len(result["tasks"]):
        lines = []  # damaged since: half a curve would pass for a whole one
    return Seed(lines, result, read_confusion(run, seed))
