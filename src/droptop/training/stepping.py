"""Drives one learner over its stream. What a step has to say (loss, intensities, what was dropped) goes into a log on
the device, which is read a block of steps at a time, so that nobody waits for the device at every step.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from droptop.learner import Learner
from droptop.streams import Stream
from droptop.training.evaluation import guess
from droptop.training.shortcut_share import shortcut_share
from droptop.types import Batch, Position


class StepRecord(NamedTuple):
    """One step, as the host reads it."""

    loss: float
    finite: bool
    dropped: dict[str, float] | None  # share of the dropped cells on the shortcut, and by chance
    kappa: list[float]  # the intensities after it, where they can change


class Log:
    """The records of a block as one tensor, a row a step."""

    def __init__(self, learner: Learner, rows: int) -> None:
        debias = learner.debias
        self.kappa = debias.intensity.kappa if debias is not None and debias.adapts else None
        width = 4 + (0 if self.kappa is None else len(self.kappa))
        self.rows = torch.zeros(rows, width, dtype=torch.float64, device=learner.device)
        self.next = torch.zeros(1, dtype=torch.int64, device=learner.device)

    def write(self, loss: Tensor, finite: Tensor, dropped: Tensor | None) -> None:
        shares = loss.new_full((2,), torch.nan) if dropped is None else dropped
        parts = [loss[None].double(), finite[None].double(), shares.double()]
        self.rows.index_copy_(0, self.next, torch.cat(parts if self.kappa is None else [*parts, self.kappa])[None])
        self.next += 1

    def amend(self) -> None:
        """The intensities that the probe after the last step gave."""
        assert self.kappa is not None
        self.rows[:, 4:].index_copy_(0, (self.next - 1).clamp(min=0), self.kappa[None])

    def read(self, count: int) -> list[StepRecord]:
        """Waits for the device; gives the first `count` records and starts over."""
        rows = self.rows[:count].tolist()
        self.next.zero_()
        return [
            StepRecord(loss, finite == 1, None if share != share else {"share": share, "chance": chance}, kappa)
            for loss, finite, share, chance, *kappa in rows
        ]


class Steps:
    """Step by step, as Python comes to it."""

    def __init__(self, learner: Learner, stream: Stream, start: Position, block: int) -> None:
        self.learner, self.stream, self.log, self.queued = learner, stream, Log(learner, block), 0
        self.batches = stream.batches(start)
        # Our own kernels are slow to launch from Python, but where bits are promised they must be those of the graphs.
        self.use_own_kernels(torch.are_deterministic_algorithms_enabled())
        # Augmentation moves the images and leaves the ground truth about their shortcut where it was.
        self.traced = learner.debias is not None and learner.config.augment == "none"

    def use_own_kernels(self, wanted: bool) -> None:
        for model in self.learner.replicas:
            model.use_own_kernels(wanted)

    def advance(self, position: Position) -> None:
        """Queues the next step, which is that of the batch at `position`, and the probe where one is due."""
        self.queued += 1
        self.learner.enter(position.task)
        self.step(position)
        if self.learner.tick(position.task):
            self.probe()

    def read(self) -> list[StepRecord]:
        """The records of what was queued since the last call."""
        count, self.queued = self.queued, 0
        return self.log.read(count)

    def step(self, position: Position) -> None:
        self.learn(self.to_device(next(self.batches)))

    def probe(self) -> None:
        self.learner.probe()
        self.log.amend()

    def predict(self, x: Tensor) -> Tensor:
        """The class that each image is taken for, in passes of the size of an evaluation's."""
        return guess(self.learner, x)

    def learn(self, batch: Batch) -> None:
        loss = self.learner.step(batch.x, batch.y)
        trace, dropped = self.learner.trace, None
        if self.traced and batch.shortcut is not None and trace is not None:
            dropped = shortcut_share(trace.mask, batch.shortcut)
        self.log.write(loss, self.learner.finite, dropped)

    def to_device(self, batch: Batch) -> Batch:
        if batch.x.device.type == self.learner.device.type:
            return batch

        def moved(part: Tensor) -> Tensor:
            return part.pin_memory().to(self.learner.device, non_blocking=True)

        shortcut = None if batch.shortcut is None else moved(batch.shortcut)
        return Batch(moved(batch.x), moved(batch.y), batch.task, shortcut)
