"""Drive one learner over its stream, without waiting for the device at every step.

Each step writes its loss, its intensities and its dropped cells into a log on the device; the host reads the log a
block of steps at a time. The same steps take another seed of the same kind by `refill`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from droptop.learner import Learner
from droptop.streams import Stream
from droptop.system.devices import widest
from droptop.training.evaluation import predict_classes
from droptop.training.shortcut_share import shortcut_share
from droptop.types import Batch, Position


class StepRecord(NamedTuple):
    """Hold what the host reads of one step."""

    loss: float
    finite: bool
    dropped: dict[str, float] | None  # share of the dropped cells on the shortcut, and share by chance
    kappa: list[float]  # intensities after the step; [] where they cannot change


class Log:
    """Hold the records of a block as one tensor on the device, a row per step."""

    def __init__(self, learner: Learner, rows: int) -> None:
        droptop = learner.debias.droptop
        self.kappa = droptop.intensity.kappa if droptop is not None and droptop.adapts else None
        width = 4 + (0 if self.kappa is None else len(self.kappa))
        self.rows = torch.zeros(rows, width, dtype=widest(learner.device), device=learner.device)
        self.next = torch.zeros(1, dtype=torch.int64, device=learner.device)

    def write(self, loss: Tensor, finite: Tensor, dropped: Tensor | None) -> None:
        """Write the next row."""
        shares = loss.new_full((2,), torch.nan) if dropped is None else dropped
        parts = [part.to(self.rows.dtype) for part in (loss[None], finite[None], shares)]
        self.rows.index_copy_(0, self.next, torch.cat(parts if self.kappa is None else [*parts, self.kappa])[None])
        self.next += 1

    def amend(self) -> None:
        """Write the intensities anew into the last row: the probe after that step may have changed them."""
        assert self.kappa is not None
        self.rows[:, 4:].index_copy_(0, (self.next - 1).clamp(min=0), self.kappa[None])

    def read(self, count: int) -> list[StepRecord]:
        """Wait for the device; return the first `count` records, and start over at the first row."""
        rows = self.rows[:count].tolist()
        self.next.zero_()
        return [
            StepRecord(loss, finite == 1, None if share != share else {"share": share, "chance": chance}, kappa)
            for loss, finite, share, chance, *kappa in rows
        ]


class Steps:
    """Run a learner's steps eagerly, one kernel after the other."""

    def __init__(self, learner: Learner, stream: Stream, start: Position, block: int) -> None:
        self.learner, self.log = learner, Log(learner, block)
        self.follow(stream, start)
        # Our own kernels are slow to launch from Python; but deterministic bits must be the same as with graphs.
        self.use_own_kernels(torch.are_deterministic_algorithms_enabled())
        # Augmentation moves the images but not the ground truth about their shortcut.
        self.shortcut_known = learner.debias.droptop is not None and learner.config.augment == "none"

    def use_own_kernels(self, wanted: bool) -> None:
        """Switch droptop's own kernels on or off in every model of the learner."""
        for model in self.learner.every_model:
            model.use_own_kernels(wanted)

    def follow(self, stream: Stream, start: Position) -> None:
        """Go on with the batches of a stream from a position on, and with an empty log."""
        self.stream, self.batches, self.queued = stream, stream.batches(start), 0
        self.log.next.zero_()

    def fits(self, learner: Learner, stream: Stream) -> bool:
        """Return whether another learner, of the same configuration but for its seed, could be filled in here."""
        ours, theirs = self.learner, learner
        same_frozen = ours.frozen is theirs.frozen or (
            ours.frozen is not None and theirs.frozen is not None and torch.equal(ours.frozen, theirs.frozen)
        )
        return type(ours) is type(theirs) and ours.spec == theirs.spec and same_frozen

    def refill(self, learner: Learner, stream: Stream, start: Position) -> None:
        """Go on as another learner that fits, from a position in its stream: its state is copied into our tensors."""
        self.learner.load_state_dict(learner.state_dict())
        self.learner.finite.fill_(True)
        self.learner.seed = learner.seed
        self.follow(stream, start)

    def queue(self, positions: Sequence[Position]) -> None:
        """Queue the steps of a block, which are those of the batches at these positions, in this order."""
        for position in positions:
            self.advance(position)

    def advance(self, position: Position) -> None:
        """Queue the next step, which is that of the batch at `position`, and the probe where one is due."""
        self.queued += 1
        self.learner.enter(position.task)
        self.step(position)
        if self.learner.tick(position.task):
            self.probe()

    def read(self) -> list[StepRecord]:
        """Return the records of the steps that were queued since the last call."""
        count, self.queued = self.queued, 0
        return self.log.read(count)

    def step(self, position: Position) -> None:
        """Queue the step of the next batch, which is the one at `position`."""
        self.learn(self.to_device(next(self.batches)))

    def probe(self) -> None:
        """Queue the probe, and log the intensities after it."""
        self.learner.probe()
        self.log.amend()

    def predict(self, x: Tensor) -> Tensor:
        """Return the class that each image is taken for."""
        return predict_classes(self.learner, x)

    def learn(self, batch: Batch) -> None:
        """Queue the learner's step on a batch, and log it."""
        loss = self.learner.step(batch.x, batch.y)
        trace, dropped = self.learner.trace, None
        if self.shortcut_known and batch.shortcut is not None and trace is not None:
            dropped = shortcut_share(trace.mask, batch.shortcut)
        self.log.write(loss, self.learner.finite, dropped)

    def to_device(self, batch: Batch) -> Batch:
        """Return a batch on the learner's device."""
        if batch.x.device.type == self.learner.device.type:
            return batch

        def moved(part: Tensor) -> Tensor:
            pinned = part.pin_memory() if self.learner.device.type == "cuda" else part
            return pinned.to(self.learner.device, non_blocking=pinned is not part)

        shortcut = None if batch.shortcut is None else moved(batch.shortcut)
        return Batch(moved(batch.x), moved(batch.y), batch.task, shortcut)
