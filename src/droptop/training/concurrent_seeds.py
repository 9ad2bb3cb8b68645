"""Train several seeds at once in one process: while the device works on one's block of steps, the others queue theirs.

Each seed has its own CUDA stream, so that small kernels of one fill the gaps of another. A seed that is done leaves its
captured steps to the next one of its kind; where new steps are made, kinds that have none come first. How many run at
once depends on the free memory. Results are the same as one by one: seeds at work share nothing but the images.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from droptop.system.devices import is_cuda
from droptop.training.kept_steps import KeptSteps
from droptop.training.seed_run import Interrupted, SeedRun

MOST = 20  # seeds at once: five keep the GPU busy, the others fill the gaps where one is evaluated or saved
SPARE = 1.5  # free memory that another seed needs to start, in multiples of what the largest one took


@dataclass
class SeedInFlight:
    """Hold a seed that has begun: its run, the work that is left, and the steps that it works with."""

    run: SeedRun
    work: Iterator[None]
    kept: KeptSteps
    refills: bool  # did another seed leave the steps? Its memory is held until this one is filled in

    def queue(self) -> bool:
        """Work until the device is busy; return False once nothing is left to do."""
        with self.kept.stream_context:
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
        self.device, self.on_gpu = device, is_cuda(device)
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
                self.begin(self.next_of_a_new_kind(), KeptSteps(self.device))
            for flight in list(self.in_flight):
                flight.run.seeds_in_process = len(self.in_flight)
                if self.advance(flight):
                    yield flight.run
                    if self.may_start() and (run := self.next_of_its_kind(flight.run)) is not None:
                        self.begin(run, flight.kept)
        if self.failures:
            raise self.failures[0]
        if self.waiting:
            raise Interrupted("stopped before all had begun")

    def may_start(self) -> bool:
        """Return whether seeds are waiting, and nothing has failed or asked to stop."""
        return bool(self.waiting) and not self.failures and not self.stop()

    def begin(self, run: SeedRun, kept: KeptSteps) -> None:
        """Let a run that is waiting begin, with steps that are there or to be made."""
        self.waiting.remove(run)
        run.kept = kept
        self.in_flight.append(SeedInFlight(run, run.work(), kept, refills=kept.steps is not None))

    def next_of_a_new_kind(self) -> SeedRun:
        """Return the first run of whose kind none is at work, or the first of all: steps serve all seeds of a kind."""
        taken = {flight.run.steps_key for flight in self.in_flight} - {None}
        return next((run for run in self.waiting if run.steps_key not in taken), self.waiting[0])

    def next_of_its_kind(self, run: SeedRun) -> SeedRun | None:
        """Return the first run that can go on with the steps of one that is done; None where there is none."""
        if run.steps_key is None or len(self.in_flight) >= self.most:
            return None
        return next((other for other in self.waiting if other.steps_key == run.steps_key), None)

    def has_capacity(self) -> bool:
        """Return whether one more seed may run at once: by number and, on a GPU, by free memory."""
        if not self.in_flight or not self.on_gpu:
            return len(self.in_flight) < self.most
        return len(self.in_flight) < self.most and self.has_memory()

    def has_memory(self) -> bool:
        """Return whether the GPU has memory for one more seed, if need be once that of ended ones is given back."""
        if torch.cuda.mem_get_info()[0] >= SPARE * self.largest:
            return True
        if torch.cuda.memory_reserved() - torch.cuda.memory_allocated() < SPARE * self.largest:
            return False  # giving back waits for all that is queued
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info()[0] >= SPARE * self.largest

    def advance(self, flight: SeedInFlight) -> bool:
        """Let a seed queue its next block; return whether it is done. Keep count of its memory and of its failure."""
        before = torch.cuda.memory_reserved() if self.on_gpu else 0
        try:
            if flight.queue():
                self.largest = max(self.largest, torch.cuda.memory_reserved() - before) if self.on_gpu else 0
                return False
        except Exception as error:
            fits_otherwise = len(self.in_flight) > 1 or flight.refills  # fewer at once, or without the seed before it
            if isinstance(error, torch.OutOfMemoryError) and fits_otherwise:
                self.most = max(1, len(self.in_flight) - 1)
                self.waiting.insert(0, flight.run)  # continues from its last checkpoint
            elif self.failed_alone is not None and is_isolated(error):
                self.failed_alone(flight.run, error)
                self.most = self.limit  # it may have been the one that did not fit
            else:
                self.failures.append(error)
                self.culprit = self.culprit or flight.run
        else:
            self.end(flight)
            return True
        self.end(flight)
        return False

    def end(self, flight: SeedInFlight) -> None:
        """Take a seed that is over out of the count, and its steps from it."""
        self.in_flight.remove(flight)
        flight.run.kept = None


def is_isolated(error: Exception) -> bool:
    """Return whether an error concerns only its own run: not a stop, nor a GPU error, after which nothing works."""
    gpu_lost = isinstance(error, getattr(torch, "AcceleratorError", ())) or "CUDA error" in str(error)
    return not isinstance(error, Interrupted) and not gpu_lost
