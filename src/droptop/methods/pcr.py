"""PCR: proxy-based contrastive replay (Lin et al., 2023). A view is compared with the proxies of the classes beside it.

    loss = mean over views i of  - log( exp(cos(f_i, w_i) / t) / sum over views j of exp(cos(f_i, w_j) / t) )

f are features, w_j is the proxy of j's class: a row of the last layer, without its bias. So a class counts in the sum
as often as it occurs in the batch, n_c times, and one that does not occur is not pushed away. Here the sum is over
classes, of exp(cos(f_i, w_c) / t + log n_c). Where the memory holds too few samples, the stream rows that stand in are
neither i nor j.

Predictions are by the largest cosine. The authors take 10 stream and 10 memory samples per step, and pass each part
through the net by itself (`--batch 10 --memory-batch 10 --replay-forward separate`).

Cost of a step: twice ER's, for two views.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from droptop.debias import Chosen
from droptop.errors import require
from droptop.learner import Joined
from droptop.methods.views import TwoViews, ViewsConfig
from droptop.nets import Backbone
from droptop.nets.heads import Cosine
from droptop.types import Spec


@dataclass(frozen=True)
class PCRConfig(ViewsConfig):
    """Hold the settings of PCR."""

    temperature: float = 0.09
    """Temperature of the cosines."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.temperature < float("inf"), "temperature", "a number above 0", self.temperature)


class PCR(TwoViews):
    """Two views, and a cross-entropy over the classes of the batch, each as often as it occurs."""

    config: PCRConfig
    config_type = PCRConfig

    def __init__(
        self,
        model: Backbone,
        spec: Spec,
        config: PCRConfig,
        debias: Sequence[Chosen] = (),
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        cosine = Cosine(model, spec.shape, config.temperature)
        super().__init__(cosine, spec, config, debias, seed=seed, device=device)

    def loss(self, logits: Tensor, batch: Joined) -> Tensor:
        """Compute the proxy-based contrastive loss."""
        counted = self.counted(batch)
        views = torch.zeros(logits.shape[1], device=logits.device).index_add_(0, batch.y, counted)
        losses = (logits + views.log()).logsumexp(1) - logits.gather(1, batch.y[:, None])[:, 0]
        return (losses * counted).sum() / counted.sum()
