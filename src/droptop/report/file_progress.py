"""How reading, decoding or fetching goes: a bar in a terminal, a line now and then elsewhere; always on stderr."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from droptop.data import image_cache as cache
from droptop.data import root

Unit = Literal["files", "images", "bytes"]
SECONDS = 10.0  # between two lines


class Bar:
    """Whoever works on files calls it with how many are done, of how many (0 where nobody knows), and which."""

    def __init__(self, console: Console, unit: Unit) -> None:
        self.console, self.unit = console, unit
        self.progress: Progress | None = None  # of the set at hand

    def __call__(self, done: int, total: int, what: str) -> None:
        counted = count(done, total, self.unit)
        if self.progress is None:
            self.progress = Progress(
                TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
                BarColumn(bar_width=30),
                TextColumn("{task.fields[count]}", table_column=Column(no_wrap=True)),
                TimeRemainingColumn(),
                console=self.console,
            )
            self.progress.add_task(what, completed=done, total=total or None, count=counted)
            self.progress.start()
        self.progress.update(
            self.progress.task_ids[0], description=what, completed=done, total=total or None, count=counted
        )
        if done >= total > 0:
            self.close()

    def close(self) -> None:
        if self.progress is not None:
            self.progress.stop()
            self.progress = None


class Lines:
    """The same in lines: the first of a set, the last, and every ten seconds between them."""

    def __init__(self, console: Console, unit: Unit) -> None:
        self.console, self.unit = console, unit
        self.said: float | None = None  # when, of the set at hand

    def __call__(self, done: int, total: int, what: str) -> None:
        now, whole = time.monotonic(), done >= total > 0
        if self.said is None or whole or now - self.said >= SECONDS:
            self.said = now
            print(f"{what}: {count(done, total, self.unit)}", file=self.console.file, flush=True)
        if whole:
            self.close()

    def close(self) -> None:
        self.said = None


def count(done: int, total: int, unit: Unit) -> str:
    """How much is done, for people."""
    if unit == "bytes":
        return f"{done / 1e6:.1f}" + (f" of {total / 1e6:.1f} MB" if total else " MB")
    return f"{done:,}" + (f" of {total:,} {unit}" if total else f" {unit}")


@contextmanager
def shown(unit: Unit) -> Iterator[root.FileProgress]:
    """A progress to hand to those who take one."""
    console = Console(stderr=True)
    bar = (Bar if console.is_terminal else Lines)(console, unit)
    try:
        yield bar
    finally:
        bar.close()


@contextmanager
def decoding() -> Iterator[None]:
    """Shows how decoding goes wherever a stream of folders is built for the first time."""
    with shown("images") as bar:
        token = cache.progress.set(bar)
        try:
            yield
        finally:
            cache.progress.reset(token)
