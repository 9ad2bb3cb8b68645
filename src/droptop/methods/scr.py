"""SCR: supervised contrastive replay (Mai et al., 2021). Learns features, and predicts by the nearest class mean.

    loss = mean over views i of  - mean over p of log( exp(z_i z_p / t) / sum over j other than i of exp(z_i z_j / t) )

z is the projection of a view by two layers, of length 1; p are the other views of i's class; t is the temperature.
Where the memory holds too few samples, the stream rows that stand in are neither i, p nor j.

Prediction knows no projection: it takes the class whose mean is nearest, of features of length 1 of the memory's
samples, computed before an evaluation. Logits are cosines with these means over the temperature; by them DropTop's
probe measures losses. There are no logits while it trains: `rsc`, `decouple` and `poe` are refused.

The authors take 10 stream and 100 memory samples per step (`--batch 10 --memory-batch 100`).

Cost of a step: twice ER's, for two views. A forward of the whole memory per evaluation, and another one per probe.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from droptop.debias import Chosen
from droptop.errors import require
from droptop.learner import PROBE_CHUNK, Joined
from droptop.methods.views import TwoViews, ViewsConfig
from droptop.nets import Backbone, evaluating
from droptop.nets.heads import Projected
from droptop.rng import seeded
from droptop.types import Spec, split_rows


@dataclass(frozen=True)
class SCRConfig(ViewsConfig):
    """Hold the settings of SCR."""

    temperature: float = 0.07
    """Temperature of the contrastive loss, and of the cosines that are its logits."""
    projection: int = 128
    """Numbers of the projection that the loss compares."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.temperature < float("inf"), "temperature", "a number above 0", self.temperature)
        require(self.projection >= 1, "projection", "a number from 1", self.projection)


def contrastive_loss(z: Tensor, y: Tensor, counted: Tensor, temperature: float) -> Tensor:
    """Return the supervised contrastive loss of projections (B, d) with labels, over the rows that count."""
    z = F.normalize(z, dim=1)
    others = counted.bool() & ~torch.eye(len(y), dtype=torch.bool, device=y.device)
    similarity = (z @ z.T / temperature).masked_fill(~others, -torch.inf)
    same = others & (y[:, None] == y)
    likelihood = torch.where(same, similarity - similarity.logsumexp(1, keepdim=True), 0.0)
    losses = -likelihood.sum(1) / same.sum(1).clamp(min=1)
    return (losses * counted).sum() / counted.sum()


class SCR(TwoViews):
    """Two views, a contrastive loss, and a nearest-mean classifier over the memory."""

    config: SCRConfig
    config_type = SCRConfig
    has_logits = False

    def __init__(
        self,
        model: Backbone,
        spec: Spec,
        config: SCRConfig,
        debias: Sequence[Chosen] = (),
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        with seeded(seed, "init", "projection"):
            projected = Projected(model, spec.shape, config.projection, len(spec.classes), config.temperature)
        super().__init__(projected, spec, config, debias, seed=seed, device=device)
        for model in self.every_model:  # averages share buffers with their model, but their features have other means
            model.means = model.means.clone()

    def loss(self, logits: Tensor, batch: Joined) -> Tensor:
        """Compute the contrastive loss of projections, which this net gives in training in place of logits."""
        return contrastive_loss(logits, batch.y, self.counted(batch), self.config.temperature)

    @property
    def every_model(self) -> list[Projected]:  # type: ignore[override]
        return super().every_model  # type: ignore[return-value]

    def refresh(self) -> None:
        """Compute the class means by every model."""
        for model in self.every_model:
            model.means.copy_(self.class_means(model))

    def probe(self) -> None:
        """Measure the losses by class means of this very step."""
        for model in self.replicas:
            model.means.copy_(self.class_means(model))
        super().probe()

    def class_means(self, model: Projected) -> Tensor:
        """Return the sum of each class's features in the memory (classes, d), which has the direction of their mean."""
        rows = self.memory.whole() | {"filled": self.memory.filled()[:, None]}
        sums = torch.zeros_like(model.means)
        with evaluating(model):
            for part in split_rows(rows, PROBE_CHUNK):
                features = F.normalize(model.features(self.normalise(part["x"])).pooled, dim=1)
                sums.index_add_(0, part["y"], features * part["filled"])
        return sums
