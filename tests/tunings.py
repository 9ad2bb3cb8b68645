"""Tunings to test with: a made-up objective in place of training."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from droptop.runs.config import Config, configure
from droptop.runs.folder import seed_folder
from droptop.sweeps.sweep import Driver, Pack
from droptop.sweeps.tuning.request import Search, TuneRequest
from droptop.sweeps.tuning.study import Teller
from droptop.sweeps.tuning.trial_run import TrialRun, number_of, write_pruned

TASKS = 5
SMALL = {"limit": 64, "width": 4, "memory": 20, "threads": 1}

Objective = Callable[[Config, int], float]  # what a configuration reaches with a seed


class Trained:
    """An engine that trains nothing: a job reaches what the objective says, and tells the study task by task."""

    def __init__(self, objective: Objective, stop_after: int | None = None, at_once: int = 1) -> None:
        self.objective, self.stop_after, self.at_once = objective, stop_after, at_once
        self.jobs: list[tuple[str, int]] = []  # that came to their end, in turn
        self.configs: list[Config] = []

    def __call__(self, packs: Sequence[Pack], driver: Driver) -> None:
        waiting = list(packs)
        while True:
            while len(waiting) < self.at_once and (more := driver.more()):
                waiting += more
            if not waiting:
                return
            for job in waiting.pop(0):
                if len(self.jobs) == self.stop_after:
                    raise KeyboardInterrupt
                self.train(job)
                self.jobs.append((job.run.name, job.seed))
                self.configs.append(job.config)
                driver.done(job)

    def train(self, job) -> None:
        """Write what a job reaches, or that it was ended early."""
        reached = self.objective(job.config, job.seed)
        if job.kind is TrialRun:
            teller = Teller(job.run.parent.parent, number_of(job.run))
            for task in range(TASKS):
                if teller.after(task, reached, TASKS):
                    write_pruned(job.run, job.seed, "below the median")
                    return
        folder = seed_folder(job.run, job.seed)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "result.json").write_text(json.dumps({"tests": {"held-out": {"A_avg": reached}}}))


def request(over: dict[str, str], debias: str = "none", **search) -> TuneRequest:
    """A request to tune ER on a few images."""
    config = configure("fashion", "er", debias, **SMALL)
    return TuneRequest(config, over, Search(**({"trials": 8, "confirm": 2, "confirm_seeds": 2} | search)))


def read(folder: Path, file: str = "tune.json") -> dict:
    """What a file of a folder has."""
    return json.loads((folder / file).read_text())
