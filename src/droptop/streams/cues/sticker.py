"""The cue `sticker`: a square on the border of the image, in the colours of its class."""

import torch
from torch import Tensor

from droptop.errors import require
from droptop.streams.cues.appearance import COLOURS, LEAST, Tables, appearances, blend, colours_at, pattern_stencils
from droptop.streams.cues.draws import whole


def usual_size(height: int, width: int) -> int:
    """Return the usual pixels per side: 5 of 32."""
    return max(1, round(min(height, width) * 5 / 32))


def prepare(classes: int, height: int, width: int, size: int) -> Tables:
    """Return what stickers are painted with; refuse a size that does not fit."""
    require(1 <= size <= min(height, width), "shortcut_size", f"pixels from 1 to {min(height, width)}", size)
    if classes <= COLOURS:
        return appearances(classes)
    require(size >= LEAST, "shortcut_size", f"{LEAST} pixels or more for {classes} classes", size)
    return appearances(classes) | {"stencils": pattern_stencils(size, size)}


def paint(
    x: Tensor, cues_N: Tensor, draws: Tensor, tables: Tables, size: int, strength: float
) -> tuple[Tensor, Tensor]:
    """Put a sticker at a random place of a random edge of each image; return images and pixels (N, H, W)."""
    height, width = x.shape[2:]
    edge = whole(draws[:, 0], 4)  # left, right, top, bottom
    upright = edge < 2
    down, right = whole(draws[:, 1], height - size + 1), whole(draws[:, 1], width - size + 1)
    top = torch.where(upright, down, edge % 2 * (height - size))
    left = torch.where(upright, edge % 2 * (width - size), right)
    rows, columns = from_corner(top, height), from_corner(left, width)
    pixels = squares(rows, columns, size)
    second = None
    if "stencils" in tables:
        stencils = tables["stencils"][tables["pattern"][cues_N]]
        image = torch.arange(len(x), device=x.device)[:, None, None]
        inside = [places.clamp(0, size - 1) for places in (rows[:, :, None], columns[:, None, :])]
        second = stencils[image, inside[0], inside[1]]
    return blend(x, colours_at(tables, cues_N, second), pixels[:, None], strength), pixels


def from_corner(corner_N: Tensor, side: int) -> Tensor:
    """Return how many pixels each of an image's pixels lies behind a corner, along one side (N, side)."""
    return torch.arange(side, device=corner_N.device) - corner_N[:, None]


def squares(rows: Tensor, columns: Tensor, size: int) -> Tensor:
    """Return the pixels (N, H, W) of squares, by how far rows and columns are behind the squares' corners."""
    inside = [(places >= 0) & (places < size) for places in (rows, columns)]
    return inside[0][:, :, None] & inside[1][:, None, :]
