"""MIR: maximally interfered retrieval (Aljundi et al., 2019). Replays what the coming update would hurt most.

Draw 50 candidates, take a virtual SGD step on the stream batch, and keep those whose loss rises most by it. The virtual
step sees unmasked, unaugmented images and batch statistics; weights and running statistics are not touched.

Cost of a step beyond ER's: a forward-backward of the stream batch and two forwards of 50.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call

from droptop.errors import require
from droptop.learner import Learner, LearnerConfig
from droptop.memory import Rows
from droptop.nets import untracked


@dataclass(frozen=True)
class MIRConfig(LearnerConfig):
    """Hold the settings of MIR."""

    candidates: int = 50
    """Memory samples among which those that suffer most from the new batch are replayed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.candidates >= self.memory_batch,
            "candidates",
            f"at least --memory-batch ({self.memory_batch})",
            self.candidates,
        )


class MIR(Learner):
    """ER with retrieval by interference."""

    config: MIRConfig
    config_type = MIRConfig

    def passes(self, rows: int) -> list[int]:
        """Add those of the virtual step."""
        return [*super().passes(rows), rows, self.config.candidates]

    def retrieve(self, stream: Rows) -> Rows:
        """Draw candidates and keep those most interfered with."""
        drawn = self.memory.sample(self.config.candidates, self.random["memory"], fill=stream)
        rise = torch.where(drawn["there"], self.interference(stream, drawn), -torch.inf)
        worst = rise.topk(self.config.memory_batch).indices
        return {name: rows[worst] for name, rows in drawn.items()}

    def interference(self, stream: Rows, candidates: Rows) -> Tensor:
        """Return by how much a step of SGD on the stream batch would raise each candidate's loss."""
        weights = {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}
        images = self.normalise(candidates["x"])
        with untracked(self.model):
            loss = F.cross_entropy(self.model(self.normalise(stream["x"])), stream["y"])
            gradients = torch.autograd.grad(loss, list(weights.values()), allow_unused=True, materialize_grads=True)
            with torch.no_grad():
                stepped = dict(
                    zip(weights, torch._foreach_add(list(weights.values()), gradients, alpha=-self.config.lr))
                )
                before = F.cross_entropy(self.model(images), candidates["y"], reduction="none")
                after = F.cross_entropy(
                    functional_call(self.model, stepped, (images,)), candidates["y"], reduction="none"
                )
        return after - before
