"""Processes that are started afresh, by the method `spawn`, and how many cores there are for them."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


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
