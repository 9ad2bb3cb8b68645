"""Shortcuts of known strength and place, painted onto images: one cue per class, right most of the time.

A cue is the number of the class that it points to. In names of tensors, N counts images.
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
    """Hold the options of a stream with a painted shortcut."""

    correlation: float = 0.95
    """Share of the training images whose shortcut points to their class."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.correlation <= 1, "correlation", "a number from 0 to 1", self.correlation)


def palette() -> Tensor:
    """Return saturated colours (CUES, 3), evenly spaced in hue, with those of neighbouring classes far apart."""
    hues = [(3 * cue % CUES) / CUES for cue in range(CUES)]
    return torch.tensor([[round(255 * v) for v in colorsys.hsv_to_rgb(hue, 1, 1)] for hue in hues], dtype=torch.uint8)


def draw_cues(labels_N: Tensor, correlation: float, generator: torch.Generator, cues: int = CUES) -> Tensor:
    """Draw a cue per sample: that of its class with probability `correlation`, else one of the others."""
    other = (labels_N + torch.randint(1, cues, labels_N.shape, generator=generator)) % cues
    return torch.where(torch.rand(labels_N.shape, generator=generator) < correlation, labels_N, other)


def border_boxes(count: int, side: int, size: int, generator: torch.Generator) -> Tensor:
    """Draw a square of `size` pixels per image, at a random place of a random edge (N, side, side)."""
    along = torch.randint(0, side - size + 1, (count,), generator=generator)
    across = torch.randint(0, 2, (count,), generator=generator) * (side - size)
    flipped = torch.rand(count, generator=generator) < 0.5
    top, left = torch.where(flipped, along, across), torch.where(flipped, across, along)
    pixels = torch.arange(side)
    rows = (pixels >= top[:, None]) & (pixels < top[:, None] + size)
    columns = (pixels >= left[:, None]) & (pixels < left[:, None] + size)
    return rows[:, :, None] & columns[:, None, :]


def add_sticker(images: Tensor, cues_N: Tensor, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Put a sticker in the colour of its cue on each border; return images and pixels of stickers (N, side, side)."""
    pixels = border_boxes(len(images), images.shape[-1], size, generator)
    colour = palette()[cues_N][:, :, None, None]
    return torch.where(pixels[:, None], colour, images), pixels


def textures(cues_N: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """Draw stripes (N, 3, side, side) whose colour, angle and width tell the cue, with a random phase."""
    angle, waves = cues_N * math.pi / CUES, 2 + cues_N % 4
    phase = torch.rand(cues_N.shape, generator=generator)
    y, x = torch.meshgrid(torch.arange(side) / side, torch.arange(side) / side, indexing="ij")
    along = x * angle.cos()[:, None, None] + y * angle.sin()[:, None, None]
    stripes = 0.5 + 0.5 * torch.sin(2 * math.pi * (along * waves[:, None, None] + phase[:, None, None]))
    return (palette()[cues_N][:, :, None, None] * (0.25 + 0.5 * stripes[:, None])).to(torch.uint8)


def add_background(
    images: Tensor, foreground: Tensor, cues_N: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Put the texture of its cue behind each foreground (N, side, side); return images and pixels of textures."""
    behind = textures(cues_N, images.shape[-1], generator)
    return torch.where(foreground[:, None], images, behind), ~foreground
