"""The shortcuts of the built-in streams, which have one of their own: cues as `--shortcut` paints them on any stream.

What differs is who draws: here one generator per set, in the order of its images. A cue is the number of the class that
it points to. In names of tensors, N counts images.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from droptop.errors import require
from droptop.options import NO_CUE
from droptop.streams.cues import background, sticker
from droptop.streams.cues.appearance import COLOURS, appearances, blend, colours_at
from droptop.streams.stream import StreamConfig

CUES = COLOURS  # of ten classes, a colour or texture each


@dataclass(frozen=True)
class ShortcutConfig(StreamConfig):
    """Hold the options of a stream with a painted shortcut."""

    correlation: float = 0.95
    """Share of the training images whose shortcut points to their class."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.correlation <= 1, "correlation", "a number from 0 to 1", self.correlation)
        require(self.shortcut == NO_CUE, "shortcut", "a stream without a shortcut of its own beside it", self.shortcut)


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
    return sticker.squares(sticker.from_corner(top, side), sticker.from_corner(left, side), size)


def add_sticker(images: Tensor, cues_N: Tensor, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Put a sticker in the colour of its cue on each border; return images and pixels of stickers (N, side, side)."""
    pixels = border_boxes(len(images), images.shape[-1], size, generator)
    return blend(images, colours_at(appearances(CUES), cues_N, None), pixels[:, None], 1), pixels


def add_background(
    images: Tensor, foreground: Tensor, cues_N: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Put the stripes of its cue behind each foreground (N, side, side); return images and the pixels behind it."""
    draws = torch.rand(len(images), 1, generator=generator)
    return background.paint(images, cues_N, draws, appearances(CUES), 0, 1, foreground)
