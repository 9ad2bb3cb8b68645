"""What a cue of a class looks like: one of ten colours; with more classes, two colours in a pattern.

Cue c has the colour c % 10. Cues 0 to 9 have no other colour. From 10 on, c // 10 - 1 chooses one of four patterns and
then the second colour: white, black, or another of the ten. All patterns are their own mirror images, since images may
be mirrored in training. That makes 450 looks.
"""

import colorsys

import torch
from torch import Tensor

from droptop.errors import BadRequest

COLOURS = 10  # that can be told apart
PATTERNS = 4  # besides one colour alone
APPEARANCES = COLOURS * (1 + PATTERNS * (COLOURS + 1))
LEAST = 3  # pixels per side in which the patterns differ

Tables = dict[str, Tensor]  # what a cue paints with, by name; they move to the device of the images


def palette() -> Tensor:
    """Return saturated colours (COLOURS, 3), evenly spaced in hue, with those of neighbouring classes far apart."""
    hues = [(3 * cue % COLOURS) / COLOURS for cue in range(COLOURS)]
    return torch.tensor([[round(255 * v) for v in colorsys.hsv_to_rgb(hue, 1, 1)] for hue in hues], dtype=torch.uint8)


def appearance_of(cue: int) -> tuple[int, int, int]:
    """Return the colour, the second colour (from 10 on white and black) and the pattern (0: none) of a cue."""
    rest, colour = divmod(cue, COLOURS)
    if rest == 0:
        return colour, colour, 0
    second, pattern = divmod(rest - 1, PATTERNS)
    return colour, (COLOURS + second if second < 2 else (colour + second - 1) % COLOURS), pattern + 1


def appearances(classes: int) -> Tables:
    """Return the looks of all classes: their first colours (C, 3), second colours (C, 3), and patterns (C)."""
    if classes > APPEARANCES:
        raise BadRequest(f"--shortcut takes at most {APPEARANCES} classes in colours, not {classes}")
    colours = torch.cat([palette(), torch.tensor([[255] * 3, [0] * 3], dtype=torch.uint8)])
    first, second, pattern = torch.tensor([appearance_of(cue) for cue in range(classes)]).T
    return {"first": colours[first], "second": colours[second], "pattern": pattern}


def pattern_stencils(height: int, width: int) -> Tensor:
    """Return where each pattern has the second colour (1 + PATTERNS, height, width); nowhere in the first of them."""
    v, u = ((torch.arange(side) + 0.5) / side for side in (height, width))
    rows, columns = v[:, None].expand(height, width), u[None].expand(height, width)
    return torch.stack(
        [
            torch.zeros(height, width, dtype=torch.bool),
            rows > 0.5,  # the lower half
            (columns - 0.5).abs() < 1 / 6,  # an upright band
            (rows - 0.5).abs() < 1 / 6,  # a band across
            ((rows - 0.5).abs() > 0.25) & ((columns - 0.5).abs() > 0.25),  # the corners
        ]
    )


def colours_at(tables: Tables, cues_N: Tensor, second_NHW: Tensor | None) -> Tensor:
    """Return the colours of cues (N, 3, H, W), the second one at some pixels; without these, (N, 3, 1, 1)."""
    first = tables["first"][cues_N][:, :, None, None]
    if second_NHW is None:
        return first
    return torch.where(second_NHW[:, None], tables["second"][cues_N][:, :, None, None], first)


def blend(x: Tensor, paint: Tensor, pixels: Tensor, strength: float) -> Tensor:
    """Return images with paint, 0 to 255, of some strength on some pixels; both broadcast to the images.

    Strength 1 hides what was there. Images of floating point go from 0 to 1.
    """
    if strength == 1 and x.dtype == torch.uint8:
        return torch.where(pixels, paint.to(torch.uint8), x)
    paint = paint.float() if x.dtype == torch.uint8 else paint.to(x.dtype) / 255
    return torch.where(pixels, as_images((1 - strength) * x + strength * paint, x.dtype), x)


def as_images(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return pixels in the type of images, within its range."""
    return x.clamp(0, 255).round().to(dtype) if dtype == torch.uint8 else x.clamp(0, 1).to(dtype)
