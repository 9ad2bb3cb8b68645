"""The progress of work on files, on stderr: a bar in a terminal, a line now and then elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from rich.progress import BarColumn, Progress, TimeRemainingColumn
from rich.table import Column

from droptop.data import image_cache as cache
from droptop.data import root
from droptop.system.terminal import Console, TextColumn, say

Unit = Literal["files", "images", "bytes"]
SECONDS = 10.0  # between two lines


class Bar:
    """Show progress as a bar in a terminal."""

    def __init__(self, console: Console, unit: Unit) -> None:
        self.console, self.unit = console, unit
        self.progress: Progress | None = None  # while a set of files is worked on

    def __call__(self, done: int, total: int, what: str) -> None:
        """Show how many files or bytes are done, of how many (0 where nobody knows), and the one at hand."""
        text = count(done, total, self.unit)
        if self.progress is None:
            self.progress = Progress(
                TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
                BarColumn(bar_width=30),
                TextColumn("{task.fields[count]}", table_column=Column(no_wrap=True)),
                TimeRemainingColumn(),
                console=self.console,
            )
            self.progress.add_task(what, completed=done, total=total or None, count=text)
            self.progress.start()
        self.progress.update(
            self.progress.task_ids[0], description=what, completed=done, total=total or None, count=text
        )
        if done >= total > 0:
            self.close()

    def close(self) -> None:
        if self.progress is not None:
            self.progress.stop()
            self.progress = None


class Lines:
    """Print progress as lines: one at the start of a set of files, one at its end, and one every ten seconds."""

    def __init__(self, console: Console, unit: Unit) -> None:
        self.console, self.unit = console, unit
        self.printed: float | None = None  # time of the last line of the set at hand

    def __call__(self, done: int, total: int, what: str) -> None:
        """Print how many files or bytes are done, of how many (0 where nobody knows), and the one at hand."""
        now, whole = time.monotonic(), done >= total > 0
        if self.printed is None or whole or now - self.printed >= SECONDS:
            self.printed = now
            say(f"{what}: {count(done, total, self.unit)}", file=self.console.file)
        if whole:
            self.close()

    def close(self) -> None:
        self.printed = None


def count(done: int, total: int, unit: Unit) -> str:
    """Return how much is done, as text."""
    if unit == "bytes":
        return f"{done / 1e6:.1f}" + (f" of {total / 1e6:.1f} MB" if total else " MB")
    return f"{done:,}" + (f" of {total:,} {unit}" if total else f" {unit}")


@contextmanager
def shown(unit: Unit) -> Iterator[root.FileProgress]:
    """Give a progress to pass to a function that works on files, and end it afterwards."""
    console = Console(stderr=True)
    bar = (Bar if console.is_terminal else Lines)(console, unit)
    try:
        yield bar
    finally:
        bar.close()


@contextmanager
def decoding() -> Iterator[None]:
    """Show progress wherever images are decoded within: when a stream of image folders is built for the first time."""
    with shown("images") as bar:
        token = cache.progress.set(bar)
        try:
            yield
        finally:
            cache.progress.reset(token)
