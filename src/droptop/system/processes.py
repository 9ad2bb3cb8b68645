"""How the processes of workers are started, and how many cores there are for them.

Workers of a command on a CPU are forked by Python's fork server: a process that has imported what they need and done
nothing else, while the command imported the same. So torch is loaded once for all of them, and each is as fresh as one
that is spawned. Others are spawned: those of a GPU, of several threads, and of a program that calls droptop, whose fork
server is its own.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, get_context
from multiprocessing.context import ForkServerContext, SpawnContext
from types import ModuleType

from droptop.system.signals import deaf

PRELOADED = ["droptop.training.workers", "scipy.special"]
_loaded_ahead = False  # has this command a fork server?


def load_ahead() -> None:
    """Start the fork server, where the system has one, and let it import what workers need."""
    global _loaded_ahead
    if not hasattr(os, "fork"):
        return
    with threads_to_load(1), without_main(), deaf():  # until a worker has its own signal handlers
        forkserver.set_forkserver_preload(PRELOADED)
        forkserver.ensure_running()
    _loaded_ahead = True


def context_of(device: str, threads: int) -> ForkServerContext | SpawnContext:
    """Return what starts a worker: the fork server, which has one thread and no GPU, or a start afresh."""
    return get_context("forkserver" if _loaded_ahead and (device, threads) == ("cpu", 1) else "spawn")


@contextmanager
def threads_to_load(count: int) -> Iterator[None]:
    """Let processes that start inside load torch and its libraries with so many threads each."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(count)
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


@contextmanager
def without_main() -> Iterator[None]:
    """Start processes inside that do not import the script which started them.

    They need nothing of it. Importing it, they would do again what it does outside of `if __name__ == "__main__":`, and
    one that Python reads from its standard input could not be imported at all.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
