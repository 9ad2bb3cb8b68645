"""SLDA: deep streaming linear discriminant analysis (Hayes and Kanan, 2020), on frozen features.

One sample after another, with m the mean of its class before it (zero for a new one) and t the samples so far:

    S <- (t S + t / (t + 1) (f - m)(f - m)') / (t + 1)        the covariance that all classes share
    L  = ((1 - e) S + e I)^-1,    logit of c = f L m_c - m_c L m_c / 2

A batch is added at once, to the same numbers: the mean before a sample counts those of its class earlier in the batch,
and t S is a sum. The paper begins with a batch of base classes, for which it estimates S otherwise; here the stream
begins with nothing.

Cost of a step: one forward of the stream's rows, and d x d per row. State: means, and a matrix of d x d.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from droptop.errors import require
from droptop.learner import LearnerConfig
from droptop.methods.frozen import Frozen


@dataclass(frozen=True)
class SLDAConfig(LearnerConfig):
    """Hold the settings of SLDA."""

    shrinkage: float = 1e-4
    """Share of the identity in the covariance."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.shrinkage <= 1, "shrinkage", "a share above 0 and up to 1", self.shrinkage)


class SLDA(Frozen):
    """Class means, and the covariance about them."""

    config: SLDAConfig
    config_type = SLDAConfig

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.scatter = self.zeros(self.model.width, self.model.width)  # t S

    def learn(self, features: Tensor, labels: Tensor, one: Tensor) -> None:
        """Add the scatter of features about the mean of their class before each, and then the features."""
        earlier = (labels[:, None] == labels).to(features.dtype).tril(-1)
        counts = self.counts[labels] + earlier.sum(1)
        means = (self.sums[labels] + earlier @ features) / counts.clamp(min=1)[:, None]
        place = self.counts.sum() + torch.arange(len(labels), device=self.device)
        apart = (features - means) * (one * place / (place + 1)).sqrt()[:, None]
        self.scatter += apart.T @ apart
        super().learn(features, labels, one)

    def refresh(self) -> None:
        """Compute the classifier of means and covariance so far."""
        means, shrinkage = self.means(), self.config.shrinkage
        covariance = self.scatter / self.counts.sum().clamp(min=1)
        shrunk = (1 - shrinkage) * covariance + shrinkage * torch.eye(self.model.width, device=self.device)
        weight = torch.cholesky_solve(means.T, torch.linalg.cholesky_ex(shrunk).L).T
        self.model.weight.copy_(weight)
        self.model.bias.copy_(-(means * weight).sum(1) / 2)
