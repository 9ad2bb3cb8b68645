"""Train several seeds at once in one process: while the device works on one's block of steps, the others queue theirs.

Each seed has its own CUDA stream, so that small kernels of one fill the gaps of another. How many run at once depends
on the free memory. Results are the same as one by one: the seeds share nothing but the images.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch

from droptop.training.graphs import cuda_stream
from droptop.training.seed_run import Interrupted, SeedRun

MOST = 20  # seeds at once: five keep the GPU busy, the others fill the gaps where one is evaluated or saved
SPARE = 1.5  # free memory that another seed needs to start, in multiples of what the largest one took


@dataclass
class SeedInFlight:
    """A seed that has begun: its run, the work that is left, and the CUDA stream that it queues its kernels on."""

    run: SeedRun
    work: Iterator[None]
    stream_context: AbstractContextManager[object]

    def queue(self) -> bool:
        """Work until the device is busy; return False once nothing is left to do."""
        with self.stream_context:
            return next(self.work, self) is not self


class ConcurrentSeeds:
    """Train seeds at once, at most `most` of them, until all are done or `stop` says so.

    Where one fails, the others save what they have and end before its error is raised. With `failed_alone`, a seed
    whose error concerns nobody else is handed to that function instead, and the others go on.
    """

    def __init__(
        self,
        runs: Sequence[SeedRun],
        device: str,
        stop: Callable[[], bool] = lambda: False,
        most: int | None = None,
        failed_alone: Callable[[SeedRun, Exception], None] | None = None,
    ) -> None:
        self.stop, self.failed_alone = stop, failed_alone
        self.waiting, self.in_flight = list(runs), list[SeedInFlight]()
        self.device, self.on_gpu = device, device == "cuda"
        self.limit = self.most = most or (MOST if self.on_gpu else 1)
        self.largest = 0  # bytes that one seed took
        self.failures: list[Exception] = []
        self.culprit: SeedRun | None = None  # the run whose failure came first
        for run in runs:
            run.stop = lambda: bool(self.failures) or stop()

    def finished(self) -> Iterator[SeedRun]:
        """Run all seeds; yield each one when it is done. Raise the first failure, or Interrupted if asked to stop."""
        while self.in_flight or self.may_start():
            if self.may_start() and self.has_capacity():
                run = self.waiting.pop(0)
                self.in_flight.append(SeedInFlight(run, run.work(), cuda_stream(self.device)))
            for flight in list(self.in_flight):
                flight.run.seeds_in_process = len(self.in_flight)
                if self.advance(flight):
                    yield flight.run
        if self.failures:
            raise self.failures[0]
        if self.waiting:
            raise Interrupted("stopped before all had begun")

    def may_start(self) -> bool:
        """Return whether seeds are waiting, and nothing has failed or asked to stop."""
        return bool(self.waiting) and not self.failures and not self.stop()

    def has_capacity(self) -> bool:
        """Return whether one more seed may run at once: by number and, on a GPU, by free memory."""
        if not self.in_flight or not self.on_gpu:
            return len(self.in_flight) < self.most
        return len(self.in_flight) < self.most and torch.cuda.mem_get_info()[0] >= SPARE * self.largest

    def advance(self, flight: SeedInFlight) -> bool:
        """Let a seed queue its next block; return whether it is done. Keep count of its memory and of its failure."""
        before = torch.cuda.memory_reserved() if self.on_gpu else 0
        try:
            if flight.queue():
                self.largest = max(self.largest, torch.cuda.memory_reserved() - before) if self.on_gpu else 0
                return False
        except Exception as error:
            if isinstance(error, torch.OutOfMemoryError) and len(self.in_flight) > 1:
                self.most = len(self.in_flight) - 1
                self.waiting.insert(0, flight.run)  # continues from its last checkpoint once another seed is done
            elif self.failed_alone is not None and is_isolated(error):
                self.failed_alone(flight.run, error)
                self.most = self.limit  # it may have been the one that did not fit
            else:
                self.failures.append(error)
                self.culprit = self.culprit or flight.run
        else:
            self.in_flight.remove(flight)
            return True
        self.in_flight.remove(flight)
        return False


def is_isolated(error: Exception) -> bool:
    """Return whether an error concerns only its own run: not a stop, nor a GPU error, after which nothing works."""
    gpu_lost = isinstance(error, getattr(torch, "AcceleratorError", ())) or "CUDA error" in str(error)
    return not isinstance(error, Interrupted) and not gpu_lost
