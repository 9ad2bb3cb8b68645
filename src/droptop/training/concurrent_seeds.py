"""Several seeds in flight in one process: while the device works on one's block of steps, the others queue theirs.

Each has a CUDA stream of its own, so that small kernels of one fill the gaps of another. How many fly at once is
decided by the memory that is free. Results are those of running them one by one: they share nothing but the images.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch

from droptop.training.graphs import cuda_stream
from droptop.training.seed_run import Interrupted, SeedRun

MOST = 20  # seeds in flight: from five on the GPU is busy, the others fill the gaps where one is looked at or saved
SPARE = 1.5  # what must be free to let another seed start, in multiples of what the largest one took


@dataclass
class SeedInFlight:
    run: SeedRun
    work: Iterator[None]
    stream_context: AbstractContextManager[object]  # the CUDA stream it queues its kernels on

    def queue(self) -> bool:
        """Works until the device is busy; False once there is nothing left to do."""
        with self.stream_context:
            return next(self.work, self) is not self


class ConcurrentSeeds:
    """Where one fails, the others save what they have and end before its error is raised; unless somebody is to be told
    of those that are `spoiled` by a fault of their own, and the others go on."""

    def __init__(
        self,
        runs: Sequence[SeedRun],
        device: str,
        stop: Callable[[], bool] = lambda: False,
        most: int | None = None,
        spoiled: Callable[[SeedRun, Exception], None] | None = None,
    ) -> None:
        self.stop, self.spoiled = stop, spoiled
        self.waiting, self.flying = list(runs), list[SeedInFlight]()
        self.device, self.on_gpu = device, device == "cuda"
        self.limit = self.most = most or (MOST if self.on_gpu else 1)
        self.largest = 0  # bytes that one seed took
        self.failures: list[Exception] = []
        self.culprit: SeedRun | None = None  # whose failure came first
        for run in runs:
            run.stop = lambda: bool(self.failures) or stop()

    def finished(self) -> Iterator[SeedRun]:
        """Runs all of them; gives each one when it is done."""
        while self.flying or self.wanted():
            if self.wanted() and self.room():
                run = self.waiting.pop(0)
                self.flying.append(SeedInFlight(run, run.work(), cuda_stream(self.device)))
            for flight in list(self.flying):
                flight.run.company = len(self.flying)
                if self.done(flight):
                    yield flight.run
        if self.failures:
            raise self.failures[0]
        if self.waiting:
            raise Interrupted("stopped before all had begun")

    def wanted(self) -> bool:
        """Are there others to be started?"""
        return bool(self.waiting) and not self.failures and not self.stop()

    def room(self) -> bool:
        """May another one start?"""
        if not self.flying or not self.on_gpu:
            return len(self.flying) < self.most
        return len(self.flying) < self.most and torch.cuda.mem_get_info()[0] >= SPARE * self.largest

    def done(self, flight: SeedInFlight) -> bool:
        """Lets a seed queue its next block; is it done with the last one?"""
        before = torch.cuda.memory_reserved() if self.on_gpu else 0
        try:
            if flight.queue():
                self.largest = max(self.largest, torch.cuda.memory_reserved() - before) if self.on_gpu else 0
                return False
        except Exception as error:
            if isinstance(error, torch.OutOfMemoryError) and len(self.flying) > 1:
                self.most = len(self.flying) - 1
                self.waiting.insert(0, flight.run)  # goes on from its last checkpoint once another one has landed
            elif self.spoiled is not None and of_its_own(error):
                self.spoiled(flight.run, error)
                self.most = self.limit  # it may be what did not fit
            else:
                self.failures.append(error)
                self.culprit = self.culprit or flight.run
        else:
            self.flying.remove(flight)
            return True
        self.flying.remove(flight)
        return False


def of_its_own(error: Exception) -> bool:
    """Does it concern the run alone in which it was raised? After an error of the GPU nothing in its process works."""
    lost = isinstance(error, getattr(torch, "AcceleratorError", ())) or "CUDA error" in str(error)
    return not isinstance(error, Interrupted) and not lost
