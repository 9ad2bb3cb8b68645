"""A machine that seems to have three GPUs: torch says so, here where a test asks for it and in workers by themselves.

Nothing can be computed on them: a job leaves a note of the GPU that its process was bound to, and ends.
"""

import os
import signal
from contextlib import nullcontext
from multiprocessing import parent_process

import pytest
import torch

from droptop.training.seed_run import SeedRun

COUNT = 3
BOUND = []  # what this process was bound to


def pretend(patch, count=COUNT):
    """Let torch find so many GPUs."""
    BOUND.clear()
    patch.setattr(torch.cuda, "is_available", lambda: count > 0)
    patch.setattr(torch.cuda, "device_count", lambda: count)
    patch.setattr(torch.cuda, "get_device_name", lambda gpu: f"GPU of {gpu}")
    patch.setattr(torch.cuda, "set_device", BOUND.append)
    patch.setattr(torch.cuda, "Stream", lambda device: device)
    patch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    patch.setattr(torch.cuda, "mem_get_info", lambda: (2**40, 2**40))
    patch.setattr(torch.cuda, "memory_reserved", lambda: 0)


if parent_process() is not None:  # a worker imports this file for the class of its job, before it does anything
    pretend(pytest.MonkeyPatch())


class Notes(SeedRun):
    """Note which GPU the job came to, which its process was bound to, and which process that is."""

    def work(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "tries").open("a") as file:
            print(self.config.options.device, *BOUND[-1:], os.getpid(), file=file)
        yield


class Dies(Notes):
    """Take the process along the first time that seed 4 is tried."""

    def work(self):
        first = not (self.folder / "tries").exists()
        yield from super().work()
        if self.seed == 4 and first:
            os.kill(os.getpid(), signal.SIGKILL)


def tries(folder):
    """What jobs noted, by seed: the GPU of each try, and the process."""
    noted = {}
    for path in folder.glob("seed-*/tries"):
        lines = [line.split() for line in path.read_text().splitlines()]
        assert all(came_to == bound for came_to, bound, _ in lines)
        noted[int(path.parent.name[5:])] = [(bound, process) for _, bound, process in lines]
    return noted
