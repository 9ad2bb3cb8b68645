"""The cue `frequency`: a faint grid of waves over the image, two peaks in its spectrum whose place tells the class."""

import math

import torch
from torch import Tensor

from droptop.errors import BadRequest
from droptop.streams.cues.appearance import Tables, as_images

SLOWEST, FASTEST = 3, 0.4  # waves per image; waves per pixel, of which 0.5 are the most that pixels can show


def prepare(classes: int, height: int, width: int, size: int) -> Tables:
    """Return the waves per image of each class, downwards and across (C, 2); refuse more classes than there are."""
    per_side = math.isqrt(classes - 1) + 1
    fastest = [int(FASTEST * side) for side in (height, width)]
    if min(fastest) - SLOWEST + 1 < per_side:
        most = max(min(fastest) - SLOWEST + 1, 0) ** 2
        raise BadRequest(
            f"--shortcut frequency tells at most {most} classes apart on {height} x {width} pixels, not {classes}"
        )
    down, across = (torch.linspace(SLOWEST, top, per_side).round() for top in fastest)
    cue = torch.arange(classes)
    return {"waves": torch.stack([down[cue // per_side], across[cue % per_side]], 1)}


def paint(x: Tensor, cues_N: Tensor, draws: Tensor, tables: Tables, size: int, strength: float) -> tuple[Tensor, None]:
    """Add waves in a random phase to each image; return images, and None since the cue is everywhere.

    At strength 1 waves go from black to white.
    """
    height, width = x.shape[2:]
    waves = tables["waves"][cues_N]
    down, across = (
        torch.cos(2 * math.pi * (waves[:, axis, None] * places(side, x.device) + draws[:, axis, None]))
        for axis, side in enumerate((height, width))
    )
    half = 127.5 if x.dtype == torch.uint8 else 0.5
    return as_images(x + strength * half * (down[:, None, :, None] * across[:, None, None, :]), x.dtype), None


def places(side: int, device: torch.device) -> Tensor:
    """Return the places of pixels along a side, from 0 up to 1."""
    return torch.arange(side, device=device) / side
