"""Ctrl-C and SIGTERM; outside the main thread, which alone may change them, nothing happens here."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def deaf() -> Iterator[None]:
    """Ignore Ctrl-C, so that processes started inside ignore it too until they choose otherwise."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt, as Ctrl-C does."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
