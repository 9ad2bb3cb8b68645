"""What a run folder holds so far, finished or not."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from droptop.config import Config
from droptop.report.series import Lines
from droptop.results.folder import read_result, seed_folder
from droptop.results.metrics import Evaluation, accuracy_curve, accuracy_matrix
from droptop.results.records import Confusion, Maps, read_confusion, read_maps


@dataclass
class Seed:
    lines: Lines
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
    name: str  # of its debiasing
    config: Config
    run: Path
    seeds: dict[int, Seed]  # those that have begun

    @property
    def done(self) -> list[int]:
        return [seed for seed, own in self.seeds.items() if own.result is not None]

    @cached_property
    def maps(self) -> Maps | None:
        """Those of the first seed that recorded any."""
        found = (read_maps(self.run, seed) for seed in self.seeds)
        return next((maps for maps in found if maps is not None), None)

    @property
    def tests(self) -> list[str]:
        """Test sets, in the stream's order."""
        return next((list(own.ends[0]) for own in self.seeds.values() if own.ends), [])


def read_arm(config: Config, run: Path) -> Arm:
    begun = [seed for seed in config.seeds if (seed_folder(run, seed) / "metrics.jsonl").exists()]
    return Arm(config.options.debias, config, run, {seed: read_seed(run, seed) for seed in begun})


def read_seed(run: Path, seed: int) -> Seed:
    try:
        result: dict[str, Any] | None = read_result(run, seed)
    except (OSError, ValueError):
        result = None
    return Seed(whole_lines(seed_folder(run, seed) / "metrics.jsonl"), result, read_confusion(run, seed))


def whole_lines(path: Path) -> Lines:
    """The lines of a metrics.jsonl that somebody may be writing: the last one may be half there."""
    lines = []
    for text in path.read_bytes().splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            break
    return lines
