"""DER++: dark experience replay (Buzzega et al., 2020). The memory keeps the model's logits beside the label.

    loss = CE(stream) + 0.2 MSE(logits, stored logits) on one memory draw + 0.5 CE on a second, independent one

The stored logits are those of the training pass in which a sample arrived. All three terms share one forward pass.
Cost of a step beyond ER's: the second memory batch, half a forward-backward more at equal batch sizes.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from droptop.debias import Debiaser
from droptop.errors import require
from droptop.learner import Joined, Learner, LearnerConfig
from droptop.memory import Rows


@dataclass(frozen=True)
class DERppConfig(LearnerConfig):
    """Hold the settings of DER++."""

    distill_weight: float = 0.2
    """Weight in the loss of the distance from stored logits."""
    replay_weight: float = 0.5
    """Weight in the loss of the cross-entropy on memory samples."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("distill_weight", "replay_weight"):
            require(0 <= getattr(self, name) < float("inf"), name, "a number from 0", getattr(self, name))


class DERpp(Learner):
    """ER with a second memory batch, whose stored logits are distilled."""

    config: DERppConfig
    config_type = DERppConfig
    memory_batches = 2

    @classmethod
    def takes(cls, member: type[Debiaser]) -> bool:
        """Return whether a debiaser can act here: not on logits, which are also compared with stored ones."""
        return super().takes(member) and not member.acts_on("logits")

    def columns(self) -> Rows:
        """Keep the logits of a sample, too."""
        return super().columns() | {"logits": torch.zeros(len(self.spec.classes))}

    def retrieve(self, stream: Rows) -> Rows:
        """Draw two independent memory batches: one to distil, one to replay."""
        draws = [super(DERpp, self).retrieve(stream) for _ in range(2)]
        return {name: torch.cat([draw[name] for draw in draws]) for name in draws[0]}

    def loss(self, logits: Tensor, batch: Joined) -> Tensor:
        """Compute the three terms of DER++."""
        draw = self.config.memory_batch
        arrived, distilled, replayed = logits.split([batch.stream, draw, draw])
        # Where the memory held too few samples, a stream row stands in: it has no stored logits to keep to.
        distance = (distilled - batch.replayed["logits"][:draw]).square().mean(1)
        return (
            F.cross_entropy(arrived, batch.y[: batch.stream])
            + self.config.distill_weight * (distance * batch.replayed["there"][:draw]).mean()
            + self.config.replay_weight * F.cross_entropy(replayed, batch.replayed["y"][draw:])
        )
