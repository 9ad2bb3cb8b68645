"""MixStyle (Zhou et al., ICLR 2021): give the first map of a sample the style of another sample of the batch.

    style of a map: mean and standard deviation of each channel over its cells
    first' = deviation' * (first - mean) / deviation + mean'
    mean', deviation' = m * own + (1 - m) * the other's,  m drawn from Beta(alpha, alpha)

A shortcut that lies in the style, such as a tint or a texture behind everything, no longer tells the class. Every
sample takes part with a chance of `share`; the paper mixes half of all batches instead. Cost: nothing that counts.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from droptop.debias.debiaser import Debiaser, View
from droptop.errors import require
from droptop.system.devices import has_gammas, widest

EPSILON = 1e-6  # added to a variance


@dataclass(frozen=True)
class MixStyleConfig:
    """Hold the settings of MixStyle."""

    share: float = 0.5
    """Share of the samples whose style is mixed with that of another sample."""
    alpha: float = 0.1
    """Shape of the Beta distribution that the mixture is drawn from: with small values, nearly all of one style."""

    def __post_init__(self) -> None:
        require(0 <= self.share <= 1, "mixstyle.share", "a share from 0 to 1", self.share)
        require(0 < self.alpha < float("inf"), "mixstyle.alpha", "a number above 0", self.alpha)


def mix_style(first: Tensor, other: Tensor, mixture_B: Tensor) -> Tensor:
    """Return first maps (B, c, h, w) in a mixture of their own style and that of the samples in the rows `other` (B).

    Of a mixture of 1, the style is a sample's own. Styles have no gradient.
    """
    variance, mean = torch.var_mean(first.detach().float(), dim=(2, 3), keepdim=True, correction=0)
    deviation = (variance + EPSILON).sqrt()
    own = mixture_B.to(mean.dtype)[:, None, None, None]
    mixed_mean, mixed_deviation = (own * style + (1 - own) * style[other] for style in (mean, deviation))
    return (mixed_deviation * (first - mean) / deviation + mixed_mean).to(first.dtype)


def standard_gamma(shape: Tensor, generator: torch.Generator) -> Tensor:
    """Draw from the gamma distribution; where the device cannot, on the CPU, from a seed that its generator draws."""
    if has_gammas(shape.device):
        return torch._standard_gamma(shape, generator)
    seed = torch.randint(2**31, (), generator=generator, device=generator.device)
    drawn = torch._standard_gamma(shape.cpu(), torch.Generator().manual_seed(int(seed)))
    return drawn.to(shape.device)


class MixStyle(Debiaser):
    """Mix the styles of samples in the first map."""

    config: MixStyleConfig
    config_type = MixStyleConfig

    def first_map(self, first: Tensor, view: View, labels: Tensor, direction: int | None = None) -> Tensor:
        samples, device = len(first), first.device
        other = self.permutation(samples, device)
        chosen = self.uniform(samples, device=device) < self.config.share
        shape = torch.full((2, samples), self.config.alpha, dtype=widest(device), device=device)
        one, two = standard_gamma(shape, self.generator)  # their share of the sum is Beta(alpha, alpha)
        return torch.where(chosen[:, None, None, None], mix_style(first, other, one / (one + two)), first)
