"""Shortcuts of known strength and known place, painted onto images: a cue a class, right most of the time.

Legend: N images; a cue is the number of the class that it points to.
"""

import colorsys
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from droptop.errors import require
from droptop.streams.stream import StreamConfig

CUES = 10  # colours and textures that can be told apart


@dataclass(frozen=True)
class ShortcutConfig(StreamConfig):
    correlation: float = 0.95
    """How often the shortcut tells the class in training."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.correlation <= 1, "correlation", "a number from 0 to 1", self.correlation)


def palette() -> Tensor:
    """CUES, 3: saturated colours, evenly spaced in hue; those of neighbouring classes are far apart."""
    hues = [(3 * cue % CUES) / CUES for cue in range(CUES)]
    return torch.tensor([[round(255 * v) for v in colorsys.hsv_to_rgb(hue, 1, 1)] for hue in hues], dtype=torch.uint8)


def draw_cues(labels_N: Tensor, correlation: float, generator: torch.Generator, cues: int = CUES) -> Tensor:
    """For each sample its own class's cue with probability `correlation`, else one of the others."""
    other = (labels_N + torch.randint(1, cues, labels_N.shape, generator=generator)) % cues
    return torch.where(torch.rand(labels_N.shape, generator=generator) < correlation, labels_N, other)


def border_boxes(count: int, side: int, size: int, generator: torch.Generator) -> Tensor:
    """N, side, side: a square of `size` pixels that touches a random edge of the image at a random place."""
    along = torch.randint(0, side - size + 1, (count,), generator=generator)
    across = torch.randint(0, 2, (count,), generator=generator) * (side - size)
    flipped = torch.rand(count, generator=generator) < 0.5
    top, left = torch.where(flipped, along, across), torch.where(flipped, across, along)
    pixels = torch.arange(side)
    rows = (pixels >= top[:, None]) & (pixels < top[:, None] + size)
    columns = (pixels >= left[:, None]) & (pixels < left[:, None] + size)
    return rows[:, :, None] & columns[:, None, :]


def add_sticker(images: Tensor, cues_N: Tensor, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A local cue: the images with a sticker in their cue's colour on the border, and its pixels (N, side, side)."""
    pixels = border_boxes(len(images), images.shape[-1], size, generator)
    colour = palette()[cues_N][:, :, None, None]
    return torch.where(pixels[:, None], colour, images), pixels


def textures(cues_N: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """N, 3, side, side: stripes whose colour, angle and width tell the cue, at a random phase."""
    angle, waves = cues_N * math.pi / CUES, 2 + cues_N % 4
    phase = torch.rand(cues_N.shape, generator=generator)
    y, x = torch.meshgrid(torch.arange(side) / side, torch.arange(side) / side, indexing="ij")
    along = x * angle.cos()[:, None, None] + y * angle.sin()[:, None, None]
    stripes = 0.5 + 0.5 * torch.sin(2 * math.pi * (along * waves[:, None, None] + phase[:, None, None]))
    return (palette()[cues_N][:, :, None, None] * (0.25 + 0.5 * stripes[:, None])).to(torch.uint8)


def add_background(
    images: Tensor, foreground: Tensor, cues_N: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """A global cue: the images with their cue's texture behind the foreground (N, side, side), and its pixels."""
    behind = textures(cues_N, images.shape[-1], generator)
    return torch.where(foreground[:, None], images, behind), ~foreground
