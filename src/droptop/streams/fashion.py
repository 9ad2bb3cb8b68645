"""The built-in streams: a subset of Fashion-MNIST, plain or with a shortcut that holds in the training data only.

    fashion              no shortcut                                    test set: clean
    fashion-sticker      a coloured sticker on the border (local cue)   test sets: biased, removed, random
    fashion-background   a texture behind the garment (global cue)      test sets: biased, removed, random
    fashion-colour       the garment's colour (all of what is seen)     test sets: biased, plain, random

The test set `biased` has the shortcut as the training images have it, `removed` and `plain` do not have it, and in
`random` it is drawn at random.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from droptop.data.fashion import CLASSES, DARKEST, foreground, images
from droptop.data.image_cache import in_use
from droptop.errors import require
from droptop.rng import generator
from droptop.streams.colours import ColourConfig, coloured
from droptop.streams.painted import on_dark
from droptop.streams.shortcuts import CUES, ShortcutConfig, add_background, add_sticker, draw_cues
from droptop.streams.stream import Stream, StreamConfig
from droptop.types import Samples, Spec

SPEC = Spec((3, 32, 32), CLASSES, mean=0.286, std=0.353)  # Fashion-MNIST's customary figures
# Measured: enough net for these images on a CPU. A stride-2 stem, and a last map of 2 x 2.
PRESET = {"width": 12, "stem": "7x7/2", "lr": 0.05, "memory": 500, "augment": "none"}

Paint = Callable[[Samples, float, torch.Generator], Samples]  # adds a shortcut of some correlation


@dataclass(frozen=True)
class StickerConfig(ShortcutConfig):
    """Hold the options of `fashion-sticker`."""

    sticker_size: int = 5
    """Pixels per side of the sticker."""
    garment_brightness: float = 0.5
    """Brightness of the garments, where the sticker has 1: the dimmer the garments, the more the sticker stands out."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(1 <= self.sticker_size <= 32, "sticker_size", "a number of pixels from 1 to 32", self.sticker_size)
        require(
            0 < self.garment_brightness <= 1,
            "garment_brightness",
            "a number above 0 and up to 1",
            self.garment_brightness,
        )


def fashion(config: StreamConfig, seed: int, limit: int | None = None, root: Path | None = None) -> Stream:
    train, test = images()
    return Stream("fashion", SPEC, train, {"clean": test}, config, seed, limit, on_dark(train, test, DARKEST))


def with_shortcut(
    name: str, paint: Paint, config: ShortcutConfig, seed: int, limit: int | None, brightness: float = 1.0
) -> Stream:
    """Return a stream with a painted shortcut, and its test sets."""

    def dimmed(part: Samples) -> Samples:
        """Return garments of the stream's brightness; they are grey, so that one channel says all."""
        levels = (torch.arange(256, dtype=torch.uint8) * brightness).to(torch.uint8)  # sooner than pixel by pixel
        x = torch.from_numpy(levels.numpy()[part.x[:, :1].numpy()])
        return dataclasses.replace(part, x=x.expand(-1, 3, -1, -1).contiguous())

    def painted(part: Samples, correlation: float, purpose: str) -> Samples:
        """Return images with cues; arms and cells whose stream is the same share them while they run."""
        random = generator(seed, name, purpose)
        return in_use((name, config, seed, purpose), lambda: paint(dimmed(part), correlation, random))

    train, test = images()
    tests = {
        "biased": painted(test, config.correlation, "biased"),
        "removed": in_use((name, config, "removed"), lambda: dimmed(test)),
        "random": painted(test, 1 / CUES, "random"),
    }
    return Stream(name, SPEC, painted(train, config.correlation, "train"), tests, config, seed, limit)


def fashion_sticker(config: StickerConfig, seed: int, limit: int | None = None, root: Path | None = None) -> Stream:
    """Return the stream whose shortcut is a sticker on the border, beside dimmed garments."""

    def paint(samples: Samples, correlation: float, random: torch.Generator) -> Samples:
        cues = draw_cues(samples.y, correlation, random)
        x, shortcut = add_sticker(samples.x, cues, config.sticker_size, random)
        return Samples(x, samples.y, cues == samples.y, shortcut)

    return with_shortcut("fashion-sticker", paint, config, seed, limit, config.garment_brightness)


def fashion_background(config: ShortcutConfig, seed: int, limit: int | None = None, root: Path | None = None) -> Stream:
    """Return the stream whose shortcut is a texture behind the garment."""

    def paint(samples: Samples, correlation: float, random: torch.Generator) -> Samples:
        cues = draw_cues(samples.y, correlation, random)
        x, shortcut = add_background(samples.x, foreground(samples.x), cues, random)
        return Samples(x, samples.y, cues == samples.y, shortcut)

    return with_shortcut("fashion-background", paint, config, seed, limit)


def fashion_colour(config: ColourConfig, seed: int, limit: int | None = None, root: Path | None = None) -> Stream:
    train, test = (dataclasses.replace(part, x=part.x[:, :1]) for part in images())
    return coloured("fashion-colour", SPEC, train, test, config, seed, limit)
