"""Cues that can be painted on any image: one short file each, pure functions on tensors.

A cue has `prepare(classes, height, width, size)`, which returns the tensors it paints with, and `paint(images, cues,
draws, tables, size, strength)`, which returns images (N, channels, H, W) and the cue's pixels (N, H, W), or None where
these are all. A cue is the number of the class that it points to; `draws` (N, DRAWS) say where on each image it goes.
"""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from droptop.streams.cues import background, colour, frame, frequency, sticker, watermark
from droptop.streams.cues.appearance import Tables

DRAWS = 2  # that a cue takes per image


class Cue(NamedTuple):
    """Say how a cue is painted, and how by default."""

    prepare: Callable[[int, int, int, int], Tables]
    paint: Callable[..., tuple[Tensor, Tensor | None]]
    strength: float
    usual_size: Callable[[int, int], int] | None = None  # in pixels; None where a cue has no size
    coloured: bool = True  # does it need images in colour?
    masked: bool = False  # does it need to know the foreground?


CUES = {
    "sticker": Cue(sticker.prepare, sticker.paint, 1.0, sticker.usual_size),
    "watermark": Cue(watermark.prepare, watermark.paint, 0.5, watermark.usual_size, coloured=False),
    "frame": Cue(frame.prepare, frame.paint, 1.0, frame.usual_size),
    "colour": Cue(colour.prepare, colour.paint, 0.5),
    "background": Cue(background.prepare, background.paint, 1.0, masked=True),
    "frequency": Cue(frequency.prepare, frequency.paint, 0.2, coloured=False),
}
