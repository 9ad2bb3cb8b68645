"""DropTop, the debiasing layer (Kim et al., AAAI-24), between a backbone's stem and its trunk.

first = model.stem(x)
first = debias(first, last=lambda: last_map(model, first), labels=y)
logits = model.head(model.trunk(first))
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from droptop.debias.fusion import fuse, last_only
from droptop.debias.intensity import Intensity, IntensityConfig
from droptop.debias.mask import Rounding, cell_counts, drop_mask
from droptop.errors import BadRequest, require
from droptop.nets.backbone import AttentionNorm


@dataclass(frozen=True)
class DropTopConfig:
    gamma: float = 5.0
    """Percent of the first map that is dropped in all."""
    kappa_0: float = 5.0
    """Initial intensity: percent dropped by attention, at most gamma; the rest is dropped at random."""
    drop: Literal["adaptive", "top", "constant", "random"] = "adaptive"
    """kappa: adaptive (DropTop), always gamma (the ablation "Fixed Drop"), always kappa_0, or 0 ("Rand Drop")."""
    attention: Literal["fused", "last"] = "fused"
    """Scores cells by both maps (Eq. 4), or by the last one alone (the ablation "No MF")."""
    attention_norm: AttentionNorm = "batch"
    """What BatchNorm normalises by while the last map is made that scores cells: the batch, or running statistics."""
    mask: Literal["hard", "soft"] = "hard"
    """Drop the top cells (Eq. 5), or weaken them by rank (appendix E)."""
    rounding: Rounding = "stochastic"
    """How percent become whole cells."""
    intensity: IntensityConfig = field(default_factory=IntensityConfig)

    @property
    def start(self) -> float:
        """What kappa begins with."""
        return min(self.kappa_0, self.gamma)

    def with_effective_kappa_0(self) -> "DropTopConfig":
        """With the kappa_0 that is run, for whoever notes it."""
        return replace(self, kappa_0=self.start)

    def check_kappa_0(self, usual: "DropTopConfig") -> None:
        """Refuses a kappa_0 above gamma that somebody asked for; the usual one a lower gamma takes along. No part of
        what a configuration must be: there are older runs that ran gamma in its place."""
        require(
            self.kappa_0 in (self.start, usual.kappa_0),
            "kappa_0",
            f"a percentage up to gamma, {self.gamma}",
            self.kappa_0,
        )

    def __post_init__(self) -> None:
        require(0 <= self.gamma <= 100, "gamma", "a percentage from 0 to 100", self.gamma)
        require(0 <= self.kappa_0 <= 100, "kappa_0", "a percentage from 0 to 100", self.kappa_0)
        require(
            self.drop == "adaptive" or not self.intensity.reference,
            "reference",
            "--drop adaptive beside it",
            f"--drop {self.drop}",
        )


# What `--debias NAME` means: the paper's ablations are settings of the one layer.
DEBIAS: dict[str, dict[str, Any]] = {
    "droptop": {},
    "droptop-paper": {},  # and what the paper has otherwise for the method (`Learner.paper`)
    "no-fusion": {"attention": "last"},
    "fixed": {"drop": "top"},
    "random": {"drop": "random"},
}


class Trace(NamedTuple):
    """What the layer did to the last batch, for reports; B, h, w each."""

    attention: Tensor
    mask: Tensor


def check_last_map(config: DropTopConfig, cells: int, instead: str) -> None:
    """A last map of one cell scores all cells of the first one alike: fusion does nothing, and it alone is refused."""
    if cells == 1 and config.attention == "last":
        raise BadRequest(f"--attention last takes a last map larger than 1 x 1: {instead}")
    if cells == 1:
        warnings.warn(f"the last map is 1 x 1, so that fusion does nothing: {instead}", stacklevel=4)


class DropTop(nn.Module):
    """The debiasing layer: the first map without the cells that the model attends to most, by class and direction."""

    last: Trace

    def __init__(self, config: DropTopConfig, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config, self.generator = config, generator
        kappa = {"top": config.gamma, "random": 0.0}.get(config.drop, config.start)
        groups = classes if config.intensity.per == "class" else 1
        self.intensity = Intensity(config.intensity, groups, kappa, config.gamma)

    @property
    def adapts(self) -> bool:
        return self.config.drop == "adaptive"

    @property
    def attention_pass(self) -> AttentionNorm | None:
        """By which of BatchNorm's statistics it attention_pass at the last map; None where it does not."""
        return None if self.config.drop == "random" else self.config.attention_norm

    def kappa(self, labels: Tensor, direction: int | None) -> Tensor:
        if self.adapts:
            return self.intensity.current(labels, direction)
        return self.intensity.kappa[self.intensity.group(labels)]

    def score(self, first: Tensor, last: Tensor) -> Tensor:
        """Attention (B, h, w): what cells are chosen by."""
        return (fuse if self.config.attention == "fused" else last_only)(first, last)

    def mask(self, attention: Tensor, kappa: Tensor, uniform: Tensor, noise: Tensor) -> Tensor:
        """The drop mask (B, h, w) of samples of intensity `kappa` (B), for given random numbers."""
        cells, rounding = attention.shape[-2:].numel(), self.config.rounding
        top = cell_counts(kappa, cells, uniform, rounding)
        total = cell_counts(torch.full_like(uniform, self.config.gamma, dtype=torch.float64), cells, uniform, rounding)
        return drop_mask(attention, top, total, noise, soft=self.config.mask == "soft")

    def forward(
        self, first: Tensor, last: Callable[[], Tensor], labels: Tensor, direction: int | None = None
    ) -> Tensor:
        """The first map with its drop mask applied. `last` gives the last map of the unmasked batch, and is not
        called where no cell is chosen by attention."""
        samples, _, height, width = first.shape
        if self.attention_pass:
            attention = self.score(first.detach(), last())
        else:
            attention = torch.zeros(samples, height, width, device=first.device)
        uniform = torch.rand(samples, generator=self.generator, device=first.device)
        noise = torch.rand(attention.shape, generator=self.generator, device=first.device)
        mask = self.mask(attention, self.kappa(labels, direction), uniform, noise)
        self.last = Trace(attention, mask)
        return first * mask[:, None].to(first.dtype)
