"""Locks on files, which the system frees when their holder ends, however it ends; on Windows too."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from droptop.errors import DroptopError

NAME = ".lock"
WAIT = 30.0  # seconds: longer than a worker lives on after the command that started it was killed
PATIENCE = 1.0  # seconds to wait before saying so
POLL = 0.05  # seconds between two attempts


class Held(DroptopError):
    """A lock that another process holds."""


@contextmanager
def locked(
    path: Path, wait: float | None = WAIT, patience: float = PATIENCE, waiting: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold the lock of a file, which is made if need be; raise `Held` after `wait` seconds (None: never).

    Calls `waiting` once, after `patience` seconds without the lock.
    """
    lock = FileLock(path)
    try:
        lock.acquire(patience if wait is None else min(patience, wait), poll_interval=POLL)
    except Timeout:
        waiting()
        try:
            lock.acquire(-1 if wait is None else max(wait - patience, 0), poll_interval=POLL)
        except Timeout:
            raise Held(f"{path.parent} is being written by another process") from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def folder_lock(folder: Path, note: Callable[[str], None] = lambda text: None) -> Iterator[None]:
    """Make a folder and hold it as its only writer; call `note` with a message if that takes a wait."""
    folder.mkdir(parents=True, exist_ok=True)

    def waiting() -> None:
        note(f"{folder} is being written by another process; waiting for it up to {WAIT:g} s")

    with locked(folder / NAME, waiting=waiting):
        yield


def is_locked(folder: Path, name: str = NAME) -> bool:
    """Return whether a process holds the lock of a folder; False where nobody may write there."""
    path = folder / name
    try:
        if not path.exists():
            return False
        lock = FileLock(path)
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False
