"""Reading ahead: the same items in the same order, made by a thread while the last ones are still in use."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

AHEAD = 4
END: Any = object()


def prefetch(items: Iterator[T], ahead: int = AHEAD) -> Iterator[T]:
    """Up to `ahead` items wait to be taken. What the thread raises is raised here; it ends when this iterator does,
    however that comes about: it never waits for anybody to take an item."""
    with ThreadPoolExecutor(1, "prefetch") as reader:
        waiting = deque(reader.submit(next, items, END) for _ in range(ahead))
        try:
            while (item := waiting.popleft().result()) is not END:
                waiting.append(reader.submit(next, items, END))
                yield item
        finally:
            for future in waiting:
                future.cancel()
