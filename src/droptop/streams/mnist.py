"""MNIST in five tasks of two digits, plain or coloured.

    split-mnist     grey digits                                    test set: clean
    biased-mnist    a colour per digit (appendix B of the paper)   test sets: biased, plain, random

Digits are padded to 32 x 32 pixels and have three channels.
"""

import dataclasses
from pathlib import Path

from droptop.data.mnist import DIGITS, PADDING, SIDE, digits
from droptop.streams.colours import ColourConfig, coloured
from droptop.streams.painted import on_dark
from droptop.streams.stream import Stream, StreamConfig
from droptop.types import Spec

DARKEST = 8  # what is brighter is part of a digit
SPEC = Spec((3, SIDE + 2 * PADDING, SIDE + 2 * PADDING), DIGITS, mean=0.1307, std=0.3081)  # the customary figures
# The net and memory of the paper's appendix E; no augmentation, since a mirrored digit is none. Its recipe for the two
# tasks of appendix B has lr 0.001, at which one pass over five tasks falls short: plain ER with width 8 and seed 0 ends
# with an accuracy of 51% there and of 87% at 0.05 on split-mnist; on biased-mnist's random colours, with 13% and 21%.
PRESET = {"width": 64, "stem": "3x3", "lr": 0.05, "memory": 200, "augment": "none"}


def split_mnist(config: StreamConfig, seed: int, limit: int | None = None, root: Path | None = None) -> Stream:
    train, test = (dataclasses.replace(part, x=part.x.expand(-1, 3, -1, -1).contiguous()) for part in digits(root))
    return Stream("split-mnist", SPEC, train, {"clean": test}, config, seed, limit, on_dark(train, test, DARKEST))


def biased_mnist(config: ColourConfig, seed: int, limit: int | None = None, root: Path | None = None) -> Stream:
    return coloured("biased-mnist", SPEC, *digits(root), config, seed, limit)
