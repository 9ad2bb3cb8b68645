import gc
import threading
import time

import pytest

from droptop.streams.prefetch import prefetch


def readers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]


def counted(count, taken):
    for number in range(count):
        taken.append(number)
        yield number


@pytest.mark.parametrize("count", [0, 1, 3, 4, 50])
def test_the_same_items_in_the_same_order(count):
    assert list(prefetch(iter(range(count)))) == list(range(count))
    assert not readers()


def test_reads_ahead_but_not_far():
    taken = []
    items = prefetch(counted(100, taken), ahead=3)
    assert next(items) == 0
    deadline = time.monotonic() + 5
    while len(taken) < 4 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.02)
    assert taken == [0, 1, 2, 3]
    items.close()


@pytest.mark.parametrize("end", ["close", "forget", "break"])
def test_the_thread_ends_with_its_iterator(end):
    items = prefetch(counted(100, []))
    assert next(items) == 0
    assert len(readers()) == 1
    if end == "close":
        items.close()
    elif end == "break":
        for _ in items:
            break
    del items
    gc.collect()
    assert not readers()


def test_an_unused_iterator_starts_no_thread():
    items = prefetch(counted(3, taken := []))
    assert not readers()
    assert not taken
    del items


def test_errors_are_raised_at_their_item():
    def failing():
        yield from (1, 2)
        raise OSError("a bad sector")

    items = prefetch(failing())
    assert (next(items), next(items)) == (1, 2)
    with pytest.raises(OSError, match="a bad sector"):
        next(items)
    assert not readers()
