"""Random convolution (Xu et al., ICLR 2021): each image through a random filter of its own, which keeps shapes alone.

    x' = m * x + (1 - m) * filter(x),  m drawn from [0, 1), weights of the filter from N(0, 1 / (3 * kernel^2))

Colours and fine textures become random, outlines stay. Every image is changed with a chance of `share`; the paper draws
one filter per batch. Cost: a convolution of 3 to 3 channels per image, nothing that counts beside the net.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from droptop.debias.debiaser import Debiaser
from droptop.errors import require


@dataclass(frozen=True)
class RandConvConfig:
    """Hold the settings of random convolution."""

    share: float = 0.5
    """Share of the images that are filtered."""
    kernel: int = 3
    """Height and width of the filters, an odd number of pixels."""
    mix: bool = True
    """Mix an image with its filtered self instead of replacing it."""

    def __post_init__(self) -> None:
        require(0 <= self.share <= 1, "randconv.share", "a share from 0 to 1", self.share)
        require(self.kernel >= 1 and self.kernel % 2 == 1, "randconv.kernel", "an odd number from 1", self.kernel)


class RandConv(Debiaser):
    """Filter training images at random."""

    config: RandConvConfig
    config_type = RandConvConfig

    def images(self, x: Tensor) -> Tensor:
        samples, channels, height, width = x.shape
        kernel = self.config.kernel
        weights = torch.randn(
            samples * channels, channels, kernel, kernel, generator=self.generator, device=x.device, dtype=x.dtype
        )
        weights = weights / (channels * kernel * kernel) ** 0.5
        own, draw = self.uniform(2, samples, 1, 1, 1, device=x.device)
        # All images at once: a group of channels per image. About middle gray, so that black stays no special value.
        filtered = F.conv2d((x - 0.5).reshape(1, -1, height, width), weights, padding=kernel // 2, groups=samples)
        filtered = filtered.view_as(x) + 0.5
        if self.config.mix:
            filtered = own * x + (1 - own) * filtered
        return torch.where(draw < self.config.share, filtered, x)
