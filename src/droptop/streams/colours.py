"""Streams in which a colour tells the class (appendix B of the paper), made from grey images on black.

The test set `biased` is coloured as the training images are, `plain` not at all, `random` with colours drawn at random.
The colour fills what the image shows, so every pixel that is not black belongs to the shortcut. Classes may share a
colour, which then points to all of them.
"""

from dataclasses import dataclass, replace

import torch
from PIL import ImageColor
from torch import Tensor

from droptop.errors import require
from droptop.rng import generator
from droptop.streams.cues.colour import tinted
from droptop.streams.shortcuts import ShortcutConfig, draw_cues
from droptop.streams.stream import Stream
from droptop.types import Samples, Spec

CLASSES = 10


@dataclass(frozen=True)
class ColourConfig(ShortcutConfig):
    """Hold the options of a stream whose colour tells the class."""

    correlation: float = 0.99
    """Share of the training images that have the colour of their class."""
    colours: str = "red,green,blue,yellow,magenta,cyan,orange,blueviolet,pink,sienna"
    """Colours of classes 0 to 9, by name or as #rrggbb; classes may share one, as in red,green,green,green,..."""

    def __post_init__(self) -> None:
        super().__post_init__()
        takes = "ten colours by name or as #rrggbb, separated by commas, two different ones at least"
        names = self.colours.split(",")
        require(len(names) == CLASSES, "colours", takes, self.colours)
        for name in names:
            try:
                bands = len(ImageColor.getrgb(name.strip()))
            except ValueError:
                bands = 0
            require(bands == 3, "colours", takes, name)
        require(len(self.palette()[0]) > 1, "colours", takes, self.colours)

    def palette(self) -> tuple[Tensor, Tensor]:
        """Return the different colours (K, 3), and for each class the number of its colour."""
        colours = [ImageColor.getrgb(name.strip()) for name in self.colours.split(",")]
        different = list(dict.fromkeys(colours))
        return torch.tensor(different), torch.tensor([different.index(colour) for colour in colours])


def coloured(
    name: str, spec: Spec, train: Samples, test: Samples, config: ColourConfig, seed: int, limit: int | None
) -> Stream:
    """Return a stream of grey images (N, 1, side, side), coloured."""
    colours, colour_of_class = config.palette()

    def paint(samples: Samples, correlation: float, purpose: str) -> Samples:
        right = colour_of_class[samples.y]
        cues = draw_cues(right, correlation, generator(seed, name, purpose), len(colours))
        return Samples(tint(samples.x, colours, cues), samples.y, cues == right, samples.x[:, 0] > 0)

    tests = {
        "biased": paint(test, config.correlation, "biased"),
        "plain": replace(test, x=test.x.expand(-1, 3, -1, -1).contiguous()),
        "random": paint(test, 1 / len(colours), "random"),
    }
    return Stream(name, spec, paint(train, config.correlation, "train"), tests, config, seed, limit)


def tint(grey: Tensor, colours: Tensor, cues_N: Tensor) -> Tensor:
    """Return grey images (N, 1, side, side) in the colours of their cues, as bright as they were (N, 3, side, side)."""
    x = torch.empty(len(grey), 3, *grey.shape[2:], dtype=torch.uint8)
    for cue, colour in enumerate(colours):  # one colour at a time, since products take four times the memory
        rows = cues_N == cue
        x[rows] = tinted(grey[rows], colour.view(3, 1, 1))
    return x
