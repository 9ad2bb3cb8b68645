"""The cue `background`: stripes in the colours of the class behind the foreground, where masks tell the foreground."""

import math

import torch
from torch import Tensor

from droptop.streams.cues.appearance import COLOURS, Tables, appearances, blend


def prepare(classes: int, height: int, width: int, size: int) -> Tables:
    """Return what stripes are painted with."""
    return appearances(classes)


def paint(
    x: Tensor, cues_N: Tensor, draws: Tensor, tables: Tables, size: int, strength: float, foreground: Tensor
) -> tuple[Tensor, Tensor]:
    """Put stripes behind the foreground (N, H, W) of each image; return images and the pixels behind it."""
    behind = stripes(cues_N, x.shape[2], x.shape[3], draws[:, 0], tables)
    return blend(x, behind, ~foreground[:, None], strength), ~foreground


def stripes(cues_N: Tensor, height: int, width: int, phase_N: Tensor, tables: Tables) -> Tensor:
    """Return stripes (N, 3, H, W) whose colours, angle and width tell the cue, as bytes.

    The first ten cues have stripes of one colour, light and dark; the others also have their second colour.
    """
    pattern = tables["pattern"][cues_N]
    angle, waves = cues_N % COLOURS * math.pi / COLOURS, 2 + (cues_N % COLOURS + pattern) % 4
    rows, columns = (torch.arange(side, device=cues_N.device) / side for side in (height, width))
    y, x = torch.meshgrid(rows, columns, indexing="ij")
    along = x * angle.cos()[:, None, None] + y * angle.sin()[:, None, None]
    light = 0.5 + 0.5 * torch.sin(2 * math.pi * (along * waves[:, None, None] + phase_N[:, None, None]))
    first, second = (tables[name][cues_N][:, :, None, None] for name in ("first", "second"))
    two = (pattern > 0)[:, None, None, None]
    dark = torch.where(two, 0.75 * (1 - light[:, None]), 0.0) * second
    return (first * torch.where(two, 0.75 * light[:, None], 0.25 + 0.5 * light[:, None]) + dark).to(torch.uint8)
