"""The progress of seeds: a bar per seed in a terminal, plain lines elsewhere."""

import time
from types import TracebackType

from rich.progress import BarColumn, Progress, TaskID, TimeElapsedColumn, TimeRemainingColumn

from droptop.report.time_left import TimeLeft
from droptop.system.terminal import Console, TextColumn, say
from droptop.training.observer import Job, Observer, SeedProgress

MANY = 24  # jobs from which only the bars of those that are not done stay


class Whole:
    """Count the steps of all jobs, which have the same number of steps each, and estimate the time left."""

    def __init__(self, jobs: int) -> None:
        self.jobs, self.finished, self.began, self.first = jobs, 0, time.monotonic(), 0
        self.steps: dict[str, int] = {}
        self.total = 0

    def update(self, job: Job, step: SeedProgress) -> None:
        """Take in how far a job is."""
        if job.name not in self.steps:
            self.first += step.step  # done before it was interrupted, which says nothing about the pace
        self.steps[job.name] = step.step
        self.total = self.jobs * step.steps

    @property
    def done(self) -> int:
        """Return the steps done of all jobs."""
        return sum(self.steps.values())

    def left(self) -> str:
        """Return the time left as text; empty where there is no estimate."""
        made = self.done - self.first
        if made == 0 or self.done == self.total:
            return ""
        seconds = (time.monotonic() - self.began) / made * (self.total - self.done)
        return f", about {seconds:.0f} s left" if seconds < 120 else f", about {seconds / 60:.0f} min left"


class Live(Observer):
    """Show a bar per seed in a terminal and, for several seeds, one for all of them."""

    def __init__(self, console: Console) -> None:
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("step {task.completed:.0f}/{task.total:.0f}  {task.fields[at]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self.rows: dict[str, TaskID] = {}
        self.whole, self.time_left = Whole(0), TimeLeft(0)
        self.all: TaskID | None = None

    def begin(self, total: int, done: int = 0) -> None:
        self.whole, self.time_left, self.all = Whole(total), TimeLeft(total - done), None

    def __enter__(self) -> "Live":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()

    def progress(self, job: Job, progress: SeedProgress) -> None:
        """Move the seed's bar, and that for all seeds."""
        at = f"task {progress.task + 1}/{progress.tasks}"
        if job.name not in self.rows:
            self.bars.start()  # not before, since images may be decoded first, with a bar of their own
            if self.all is None and self.whole.jobs > 1:
                self.all = self.bars.add_task("all", total=self.whole.jobs * progress.steps, at="")
            self.rows[job.name] = self.bars.add_task(job.name, total=progress.steps, at=at)
        self.bars.update(self.rows[job.name], completed=progress.step, at=at)
        self.whole.update(job, progress)
        self.sum_up()
        if text := self.time_left.update(job, progress):
            self.bars.console.print(text)

    def sum_up(self) -> None:
        """Update the bar for all seeds."""
        if self.all is not None:
            self.bars.update(self.all, completed=self.whole.done, at=f"{self.whole.finished} of {self.whole.jobs} done")

    def done(self, job: Job) -> None:
        self.whole.finished += 1
        self.sum_up()
        if self.whole.jobs > MANY and job.name in self.rows:
            self.bars.remove_task(self.rows.pop(job.name))

    def note(self, text: str) -> None:
        self.bars.console.print(f"note: {text}")


class Plain(Observer):
    """Print a line when a seed starts, enters a task or is done, with the time left for all of them."""

    def __init__(self) -> None:
        self.tasks: dict[str, int] = {}
        self.whole, self.time_left = Whole(0), TimeLeft(0)

    def begin(self, total: int, done: int = 0) -> None:
        self.whole, self.time_left = Whole(total), TimeLeft(total - done)

    def __enter__(self) -> "Plain":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def progress(self, job: Job, progress: SeedProgress) -> None:
        """Print a line if the seed has entered a task."""
        self.whole.update(job, progress)
        if self.tasks.get(job.name) != progress.task:
            self.tasks[job.name] = progress.task
            say(f"{job.name}: task {progress.task + 1}/{progress.tasks}, step {progress.step}/{progress.steps}")
        if text := self.time_left.update(job, progress):
            say(text)

    def done(self, job: Job) -> None:
        self.whole.finished += 1
        say(f"{job.name}: done, {self.whole.finished} of {self.whole.jobs}{self.whole.left()}")

    def note(self, text: str) -> None:
        say(f"note: {text}")


def listener(console: Console) -> Live | Plain:
    """Return what shows progress on a console: bars in a terminal, lines elsewhere."""
    return Live(console) if console.is_terminal else Plain()
