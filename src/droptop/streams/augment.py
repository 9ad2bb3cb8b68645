"""Augmentation on tensors: a whole batch at once, on whatever device it lies, from the generator it is given."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Augment = Literal["none", "crop-flip"]


def crop_flip(x: Tensor, generator: torch.Generator, padding: int = 4) -> Tensor:
    """Each image (B, c, h, w) shifted by up to `padding` pixels over black, and mirrored half of the time."""
    samples, _, height, width = x.shape
    shift = torch.randint(0, 2 * padding + 1, (2, samples, 1), generator=generator, device=x.device)
    mirror = torch.rand(samples, 1, generator=generator, device=x.device) < 0.5
    rows = torch.arange(height, device=x.device) + shift[0]
    columns = torch.arange(width, device=x.device).expand(samples, -1)
    columns = torch.where(mirror, columns.flip(1), columns) + shift[1]
    padded = F.pad(x, (padding,) * 4)
    image = torch.arange(samples, device=x.device)[:, None, None]
    return padded[image, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
