"""How much memory there is."""

import os
from contextlib import suppress
from pathlib import Path

import torch

MEMINFO, CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def room_on(device: torch.device) -> int:
    """Return how many bytes may be allocated: those of a whole GPU, or those that this machine has to spare.

    In a container, that is at most what the container is given.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    if device.type != "cpu":
        return 2**63
    room = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError, StopIteration):
        lines = MEMINFO.read_text().splitlines()
        room = 1024 * int(next(line.split()[1] for line in lines if line.startswith("MemAvailable:")))
    with suppress(OSError, ValueError):  # "max" where there is no limit
        limit, used = (int((CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        room = min(room, limit - used)
    return room


def gib(count: int) -> str:
    """Return a number of bytes as text."""
    return f"{count / 2**30:,.1f} GiB"
