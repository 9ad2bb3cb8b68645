"""Locks on files, which the system frees when their holder ends, however it ends."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from droptop.errors import DroptopError
from droptop.system import claims

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

    Calls `waiting` once, after `patience` seconds without the lock. On a file system without locks, a claim stands in.
    """
    acquire, release = (_lock if claims.has_locks(path) else _claim)(path)
    if not acquire(patience if wait is None else min(patience, wait)):
        waiting()
        if not acquire(math.inf if wait is None else max(wait - patience, 0)):
            who = claims.holder(path) or "another process"
            raise Held(f"{path.parent} is being written by {who}")
    try:
        yield
    finally:
        release()


def _lock(path: Path) -> tuple[Callable[[float], bool], Callable[[], None]]:
    """Return what takes the lock of a file within some seconds, if it can, and what gives it back."""
    lock = FileLock(path)

    def acquire(seconds: float) -> bool:
        try:
            lock.acquire(-1 if seconds == math.inf else seconds, poll_interval=POLL)
        except Timeout:
            return False
        return True

    return acquire, lock.release


def _claim(path: Path) -> tuple[Callable[[float], bool], Callable[[], None]]:
    """Return the same two for a claim."""

    def acquire(seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not claims.claim(path):
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL)
        return True

    return acquire, lambda: claims.give_up(path)


def note_without_locks(path: Path, note: Callable[[str], None]) -> None:
    """Note it where the file system of a file has no locks."""
    if not claims.has_locks(path):
        note(f"{path.parent} is on a file system without locks: work in it from one machine at a time")


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
        if not claims.has_locks(path):
            return claims.holder(path) is not None
        lock = FileLock(path)
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False
