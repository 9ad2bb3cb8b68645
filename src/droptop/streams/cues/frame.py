"""The cue `frame`: a border around the image, in the colours of its class."""

import torch
from torch import Tensor

from droptop.errors import require
from droptop.streams.cues.appearance import COLOURS, Tables, appearances, blend, colours_at, pattern_stencils


def usual_size(height: int, width: int) -> int:
    """Return the usual width of a frame in pixels: 2 of 32."""
    return max(1, round(min(height, width) / 16))


def prepare(classes: int, height: int, width: int, size: int) -> Tables:
    """Return what frames are painted with; refuse frames that leave nothing of the image."""
    most = (min(height, width) - 1) // 2
    require(1 <= size <= most, "shortcut_size", f"pixels from 1 to {most}, which leave something to see", size)
    border = torch.ones(1, height, width, dtype=torch.bool)
    border[:, size : height - size, size : width - size] = False
    patterned = {"stencils": pattern_stencils(height, width)} if classes > COLOURS else {}
    return appearances(classes) | {"border": border} | patterned


def paint(
    x: Tensor, cues_N: Tensor, draws: Tensor, tables: Tables, size: int, strength: float
) -> tuple[Tensor, Tensor]:
    """Put a frame around each image; return images and pixels (N, H, W)."""
    second = tables["stencils"][tables["pattern"][cues_N]] if "stencils" in tables else None
    painted = blend(x, colours_at(tables, cues_N, second), tables["border"], strength)
    return painted, tables["border"].expand(len(x), -1, -1)
