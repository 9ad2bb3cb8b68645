"""Representation self-challenging (Huang et al., ECCV 2020): mute the cells that the answer leans on most.

    weight of a cell of the first map = mean over channels of  gradient of the right class's logit  *  map
    of a share of the samples, the top `percent` of the cells by weight become 0

It is DropTop's twin with the gradient in place of attention, and a constant intensity. The paper mutes the last map,
and chooses samples by their loss. Cost: a forward and a backward pass more.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from droptop.debias.debiaser import Debiaser, View
from droptop.debias.mask import apply_mask, cell_counts, ranks
from droptop.errors import require


@dataclass(frozen=True)
class RSCConfig:
    """Hold the settings of representation self-challenging."""

    percent: float = 5.0
    """Percent of the first map that is muted."""
    share: float = 1.0
    """Share of the samples that are muted at all."""

    def __post_init__(self) -> None:
        require(0 <= self.percent <= 100, "rsc.percent", "a percentage from 0 to 100", self.percent)
        require(0 <= self.share <= 1, "rsc.share", "a share from 0 to 1", self.share)


class RSC(Debiaser):
    """Mute the cells of the first map that raise the right logit most."""

    config: RSCConfig
    config_type = RSCConfig
    needs_logits = True

    def first_map(self, first: Tensor, view: View, labels: Tensor, direction: int | None = None) -> Tensor:
        samples, _, height, width = first.shape
        assert view.logits is not None  # `needs_logits`
        watched = first.detach().requires_grad_()
        with torch.enable_grad():
            right = view.logits(watched).gather(1, labels[:, None]).sum()
            (gradient,) = torch.autograd.grad(right, watched)
        weight = (gradient * watched.detach()).mean(1, dtype=torch.float32).flatten(1)
        challenged, offset = self.uniform(2, samples, device=first.device)
        percent = torch.full_like(offset, self.config.percent)
        muted = torch.where(challenged < self.config.share, cell_counts(percent, height * width, offset), 0)
        kept = ranks(weight) >= muted[:, None]
        return apply_mask(first, kept.view(samples, height, width))
