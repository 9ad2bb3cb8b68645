"""GSS-greedy: gradient-based sample selection (Aljundi et al., 2019). Keeps samples whose gradients differ.

A sample's score is the largest cosine between its gradient and those of up to 10 disjoint memory batches of 10. While
the memory has room, every sample is stored with its score. Once it is full, a stream batch whose gradient points away
from all those of the memory (largest cosine below zero) may replace samples: for each new sample one victim is drawn by
score, and replaced with a probability that grows with its score. Gradients are those of unmasked, unaugmented images,
with BatchNorm in eval mode.

Cost of a step beyond ER's: one forward-backward of 100 memory samples and the stream batch; the gradients of samples
and batches come out of it layer by layer.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from droptop.errors import require
from droptop.learner import Learner, LearnerConfig
from droptop.memory import Rows, first_free_slots, weighted_draw
from droptop.nets import Adapted, evaluating
from droptop.nets.gradients import RowGroups, check_model, gram, group_gradients, layer_passes


@dataclass(frozen=True)
class GSSConfig(LearnerConfig):
    """Hold the settings of GSS."""

    gradient_batches: int = 10
    """Number of memory batches whose gradients stand for the whole memory."""
    gradient_batch: int = 10
    """Samples in each of these batches."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.gradient_batches >= 1, "gradient_batches", "a number from 1", self.gradient_batches)
        require(self.gradient_batch >= 1, "gradient_batch", "a number of samples from 1", self.gradient_batch)


class GSS(Learner):
    """ER with an update of the memory by gradients."""

    config: GSSConfig
    config_type = GSSConfig
    paper = {"kappa_0": 0.5}
    compiles = False  # gradients are read off the layers one by one

    def columns(self) -> Rows:
        """Keep the score of a sample, too."""
        return super().columns() | {"score": torch.zeros(())}

    def check_maps(self) -> None:
        """Raise BadRequest, also if the gradients of single samples cannot be had of this model."""
        super().check_maps()
        with evaluating(self.model):
            check_model(self.model, torch.zeros(self.spec.shape, device=self.device))

    def remember(self, stream: Rows) -> None:
        """Store samples with their scores: in free slots or, in a full memory, in place of victims."""
        score, batch_score = self.scores(stream)
        free = first_free_slots(self.memory, len(score))
        full = self.memory.size == self.memory.capacity
        slots = torch.where(full, self.victims(score, batch_score), free)
        slots = torch.where(self.finite, slots, self.memory.capacity)
        self.memory.write(slots, stream | {"score": score})

    def scores(self, stream: Rows) -> tuple[Tensor, Tensor]:
        """Return the score of every stream sample, and that of the batch as a whole."""
        count, size = self.config.gradient_batches, self.config.gradient_batch
        slots, drawn = self.memory.draw(count * size, self.random["memory"])
        rows, held = self.memory.read(slots), drawn.view(count, size)
        # Only full batches count; but a memory smaller than one batch counts as one.
        complete = held.all(1) | ((torch.arange(count, device=self.device) == 0) & held.any(1))
        batch, x = len(stream["y"]), self.normalise(torch.cat([rows["x"], stream["x"]]))
        labels, counted = torch.cat([rows["y"], stream["y"]]), F.pad(drawn, (0, batch), value=True)

        def loss(logits: Tensor) -> Tensor:
            losses = F.cross_entropy(logits, labels, reduction="none")
            return torch.where(counted, losses, 0).sum()  # its scale does not change a cosine

        groups = [RowGroups(count, size), RowGroups(batch, 1)]
        everything = torch.zeros(count + batch, count + batch, device=self.device)
        with evaluating(self.model):
            for layer in layer_passes(self.model, x, loss, overwrites=isinstance(self.model, Adapted)):
                for gradients in group_gradients(layer, groups, self.model.own_kernels):
                    everything += gram(gradients)
        products, each = everything[count:, :count], everything[count:, count:]
        # The last row is the batch as a whole, whose gradient is the sum of its samples'.
        products = torch.cat([products, products.sum(0, keepdim=True)])
        squares, of_memory = torch.cat([each.diag(), each.sum()[None]]), everything.diag()[:count]
        lengths = (squares[:, None] * of_memory).clamp(min=0).sqrt()
        cosines = (products / lengths.clamp(min=1e-12)).clamp(-1, 1)
        largest = torch.where(complete, cosines, -torch.inf).amax(1)
        score = torch.where(complete.any(), largest, 0.1)  # for samples that come to an empty memory
        return score[:-1], score[-1]

    def victims(self, score: Tensor, batch_score: Tensor) -> Tensor:
        """Return the slot that every stream sample takes in a full memory; `capacity` where it is not stored."""
        held, capacity = self.memory.rows["score"][:-1], self.memory.capacity
        spread = held.amax() - held.amin()
        drawn = weighted_draw((held - held.amin()) / (spread + 0.01), len(score), self.random["memory"], capacity)
        old, new = F.pad(held, (0, 1))[drawn] + 1, score + 1
        uniform = torch.rand(len(score), generator=self.random["memory"], device=self.device)
        replaced = (uniform * (old + new) < old) & (batch_score < 0)
        return torch.where(replaced, drawn, capacity)
