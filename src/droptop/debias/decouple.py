"""Spectral decoupling (Pezeshki et al., NeurIPS 2021): punish large logits instead of large weights.

    loss' = loss + weight * mean of logits^2

Once one feature explains the labels, cross-entropy stops teaching the others ("gradient starvation"); with bounded
logits it goes on. Cost: nothing that counts.
"""

from dataclasses import dataclass

from torch import Tensor

from droptop.debias.debiaser import Debiaser
from droptop.errors import require


@dataclass(frozen=True)
class DecoupleConfig:
    """Hold the settings of spectral decoupling."""

    weight: float = 0.01
    """Weight in the loss of the mean squared logit."""

    def __post_init__(self) -> None:
        require(0 <= self.weight < float("inf"), "decouple.weight", "a number from 0", self.weight)


class Decouple(Debiaser):
    """Add the mean squared logit to the loss."""

    config: DecoupleConfig
    config_type = DecoupleConfig

    def penalty(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self.config.weight * logits.square().mean()
