"""What a person sees while seeds run: a line a seed in a terminal, plain lines elsewhere."""

import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from droptop.engine.pool import Job
    from droptop.engine.train import Progress as Step


class Live:
    """Rich progress bars."""

    def __init__(self, console: Console) -> None:
        self.bars = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=30),
            TextColumn("step {task.completed:.0f}/{task.total:.0f}  task {task.fields[at]}"),
            TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=console)
        self.rows: dict[str, TaskID] = {}

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.bars.stop()

    def progress(self, job: "Job", step: "Step") -> None:
        at = f"{step.task + 1}/{step.tasks}"
        if job.name not in self.rows:
            self.bars.start()  # not before, since other bars may come first
            self.rows[job.name] = self.bars.add_task(job.name, total=step.steps, at=at)
        self.bars.update(self.rows[job.name], completed=step.step, at=at)

    def done(self, job: "Job") -> None:
        pass

    def note(self, text: str) -> None:
        self.bars.console.print(f"note: {text}", markup=False, highlight=False)


class Plain:
    """A line when a seed starts, enters a task or is done."""

    def __init__(self) -> None:
        self.tasks: dict[str, int] = {}
        self.started: dict[str, tuple[float, int]] = {}

    def __enter__(self) -> "Plain":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        pass

    def progress(self, job: "Job", step: "Step") -> None:
        began, first = self.started.setdefault(job.name, (time.monotonic(), step.step))
        if self.tasks.get(job.name) != step.task:
            self.tasks[job.name] = step.task
            left = ""
            if step.step > first:
                seconds = (time.monotonic() - began) / (step.step - first) * (step.steps - step.step)
                left = f", about {seconds:.0f} s left"
            print(f"{job.name}: task {step.task + 1}/{step.tasks}, step {step.step}/{step.steps}{left}", flush=True)

    def done(self, job: "Job") -> None:
        print(f"{job.name}: done", flush=True)

    def note(self, text: str) -> None:
        print(f"note: {text}", flush=True)


def listener(console: Console) -> Live | Plain:
    return Live(console) if console.is_terminal else Plain()
