"""How long a command will take: said once, from the steps of its first seconds.

about 12 minutes left: 0.9 s per step, 2 seeds at once
"""

import time
from dataclasses import dataclass
from pathlib import Path

from droptop.streams.folder import NARROW
from droptop.training.observer import Job, SeedProgress

ENOUGH = 4.0  # seconds of steps that an estimate takes
LONG = 30 * 60.0  # seconds from which a CPU gets a suggestion


@dataclass
class Pace:
    """Hold what is known of a job: when its first report came, and how far it was then and is now."""

    began: float
    first: int
    now: float
    step: int
    steps: int

    @property
    def seconds_per_step(self) -> float | None:
        """Return how long a step takes; None before one was made."""
        made = self.step - self.first
        return (self.now - self.began) / made if made else None


class TimeLeft:
    """Estimate the time that jobs take together, once their first steps are made; `jobs` are those to be done.

    What was done before counts for nothing: neither in the pace nor in what is left. Jobs that have not begun are
    taken to be like those that have. An evaluation is part of the pace once there was one.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs, self.said = jobs, False
        self.paces: dict[tuple[Path, int], Pace] = {}

    def update(self, job: Job, progress: SeedProgress) -> str:
        """Take in how far a job is; return the estimate when it can be made, the first time; else nothing."""
        now = time.monotonic()
        first = Pace(now, progress.step, now, progress.step, progress.steps)
        pace = self.paces.setdefault((job.run, job.seed), first)
        pace.now, pace.step = now, progress.step
        since = now - min(each.began for each in self.paces.values())
        if self.said or since < ENOUGH or not self.measured():
            return ""
        self.said = True
        return self.text(job)

    def measured(self) -> list[float]:
        """Return the seconds per step of every job that has made one."""
        return [each.seconds_per_step for each in self.paces.values() if each.seconds_per_step is not None]

    def seconds(self) -> float:
        """Return the seconds that are left, with as many jobs at once as there are now."""
        usual = sum(self.measured()) / len(self.measured())
        begun = sum((each.steps - each.step) * (each.seconds_per_step or usual) for each in self.paces.values())
        steps = max(each.steps for each in self.paces.values())
        return (begun + (self.jobs - len(self.paces)) * steps * usual) / self.at_once

    @property
    def at_once(self) -> int:
        """Return how many jobs are at work."""
        return max(sum(each.step < each.steps for each in self.paces.values()), 1)

    def text(self, job: Job) -> str:
        """Return the estimate in words, with a suggestion where it is long on a CPU."""
        seconds, usual = self.seconds(), sum(self.measured()) / len(self.measured())
        at_once = f", {self.at_once} seeds at once" if self.at_once > 1 else ""
        said = f"about {duration(seconds)} left: {usual:.2g} s per step{at_once}"
        return f"{said}; {suggestion(job)}" if seconds > LONG and job.config.options.device == "cpu" else said


def duration(seconds: float) -> str:
    """Return a time in words: seconds up to two minutes, minutes up to two hours, then hours."""
    if seconds < 120:
        return f"{seconds:.0f} second{'s' * (round(seconds) != 1)}"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def suggestion(job: Job) -> str:
    """Return what makes a run on a CPU shorter: a narrower net, else fewer samples, else a GPU."""
    width = getattr(job.config.net, "width", 0) if job.config.builds_net else 0
    if width > NARROW:
        return f"--width {NARROW} takes a fraction of that (the net has {width} channels)"
    if job.config.options.limit is None:
        return "--limit 500 has a quick look at 500 samples per task"
    return "a GPU is faster (--device cuda)"
