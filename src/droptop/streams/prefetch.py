"""Reading ahead: a thread makes the next items while the last ones are in use; items and order stay the same."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

AHEAD = 4
END: Any = object()


def prefetch(items: Iterator[T], ahead: int = AHEAD) -> Iterator[T]:
    """Yield the same items, of which a thread makes up to `ahead` before they are needed.

    Raises what the thread raises. The thread ends with this iterator, also where that is closed early, since it never
    waits for an item to be taken.
    """
    with ThreadPoolExecutor(1, "prefetch") as reader:
        waiting = deque(reader.submit(next, items, END) for _ in range(ahead))
        try:
            while (item := waiting.popleft().result()) is not END:
                waiting.append(reader.submit(next, items, END))
                yield item
        finally:
            for future in waiting:
                future.cancel()
