"""The cue `colour`: the image as through coloured glass; dark pixels stay dark."""

from torch import Tensor

from droptop.streams.cues.appearance import COLOURS, Tables, appearances, as_images, colours_at, pattern_stencils


def prepare(classes: int, height: int, width: int, size: int) -> Tables:
    """Return what images are tinted with."""
    return appearances(classes) | ({"stencils": pattern_stencils(height, width)} if classes > COLOURS else {})


def paint(x: Tensor, cues_N: Tensor, draws: Tensor, tables: Tables, size: int, strength: float) -> tuple[Tensor, None]:
    """Tint each image; return images, and None since the cue is everywhere."""
    second = tables["stencils"][tables["pattern"][cues_N]] if "stencils" in tables else None
    return tinted(x, colours_at(tables, cues_N, second), strength), None


def tinted(x: Tensor, colours: Tensor, strength: float = 1.0) -> Tensor:
    """Return images that keep `1 - strength` of their light, and of the rest as much of each channel as the colour has.

    Colours are from 0 to 255 and broadcast to the images.
    """
    kept = (1 - strength) + strength * (colours / 255)
    return as_images(x * kept, x.dtype)
