"""What a run folder holds so far, finished or not: its arms and their seeds."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from droptop.results.metrics import Evaluation, accuracy_curve, accuracy_matrix
from droptop.results.series import Lines
from droptop.runs.folder import RunFolder
from droptop.runs.records import Confusion, Maps
from droptop.runs.seed_files import SeedFiles


@dataclass
class Seed:
    """Hold what one seed has measured so far."""

    lines: Lines  # of its metrics.jsonl; empty where that was damaged after the seed was done
    result: dict[str, Any] | None  # None until the seed is done
    confusion: list[Confusion]
    files: SeedFiles

    @property
    def classes(self) -> list[str]:
        """Return the names of all classes; empty until anything records them."""
        return self.result["classes"] if self.result else self.confusion[-1].classes if self.confusion else []

    @property
    def tasks(self) -> list[list[int]]:
        """Return the classes of each task; empty until anything records them."""
        return self.result["tasks"] if self.result else self.confusion[-1].tasks if self.confusion else []

    @cached_property
    def ends(self) -> list[dict[str, Evaluation]]:
        """Return the evaluations after each task so far, by test set."""
        return [line["eval"] for line in self.lines if line.get("task_end")]

    @property
    def tests(self) -> list[str]:
        """Return the test sets in the stream's order; empty until the first task is over."""
        return list(self.result["tests"] if self.result else self.ends[0] if self.ends else ())

    def figures(self, test: str) -> dict[str, Any]:
        """Return the figures of a test set by name; none until the seed is done."""
        return self.result["tests"][test] if self.result else {}

    def curve(self, test: str) -> list[float]:
        """Return the accuracy after each task so far, over all classes seen."""
        if self.result:
            return self.result["tests"][test]["A"]
        return accuracy_curve([tests[test] for tests in self.ends])

    def matrix(self, test: str) -> list[list[float | None]]:
        """Return the accuracy after each task so far, on each task."""
        if self.result:
            return self.result["tests"][test]["matrix"]
        return accuracy_matrix([tests[test] for tests in self.ends], tuple(map(tuple, self.tasks)))


@dataclass
class Arm:
    """Hold what one arm has measured so far."""

    run: RunFolder
    seeds: dict[int, Seed]  # only those that have begun
    files: list[SeedFiles]  # of all seeds

    @property
    def name(self) -> str:
        """Return the arm's name."""
        return self.run.name

    @property
    def done(self) -> list[int]:
        """Return the seeds that are done."""
        return [number for number, seed in self.seeds.items() if seed.result is not None]

    @cached_property
    def maps(self) -> Maps | None:
        """Return the attention maps of the first seed that recorded any; None where none did."""
        by_seed = (seed.files.maps for seed in self.seeds.values())
        return next((maps for maps in by_seed if maps is not None), None)

    @property
    def tests(self) -> list[str]:
        """Return the test sets in the stream's order; empty until a seed was measured."""
        return next((seed.tests for seed in self.seeds.values() if seed.tests), [])


def read_arm(run: RunFolder) -> Arm:
    """Return what an arm has measured so far."""
    seeds = {number: read_seed(run, number) for number in run.seeds}
    files = [seed.files for seed in seeds.values()]
    return Arm(run, {number: seed for number, seed in seeds.items() if seed.lines or seed.result}, files)


def read_seed(run: RunFolder, number: int) -> Seed:
    """Return what a seed has measured so far."""
    files = SeedFiles(run, number, whole=True)  # reads the result first: a seed that is done by now has all its metrics
    lines, result, confusion = files.lines, files.result, files.confusion
    if result is not None and sum("task_end" in line for line in lines) < len(result["tasks"]):
        lines = []  # damaged since it was done: half a curve would pass for a whole one
    classes = [len(next(iter(groups.values()))["n"]) for line in lines for groups in line.get("eval", {}).values()]
    tests = set(next((line["eval"] for line in lines if "eval" in line), ()))
    if classes and any(len(each.classes) != classes[0] or set(each.counts) != tests for each in confusion):
        confusion = []
    return Seed(lines, result, confusion, files)


def leave_out_odd_ones(arms: list[Arm]) -> None:
    """Leave out seeds that have other test sets or figures than most, as only damage makes them."""
    done = [(arm, number, seed) for arm in arms for number, seed in arm.seeds.items() if seed.result]
    shapes = [
        repr([(test, sorted(figures)) for test, figures in seed.result["tests"].items()])
        for _, _, seed in done
        if seed.result
    ]
    usual = max(shapes, key=shapes.count, default="")
    for (arm, number, seed), shape in zip(done, shapes):
        if shape != usual:
            del arm.seeds[number]
            seed.files.unfit.append(f"{seed.files.folder / 'result.json'} has other figures than most")
            seed.files.result = None
