"""Split CIFAR-10 with its images enlarged to 64 px (bilinear), for cifar10-64px.toml.

The stem that pools leaves a last map of one cell at 32 px, where fusion does nothing, and of 2 x 2 cells at 64 px.
Images are read from the folder that DROPTOP_DATA names, else from ./data.
"""

from functools import cache

import torch
import torch.nn.functional as F

from droptop import Samples, Spec, Stream
from droptop.data.cifar import CIFAR10, folder_of, images
from droptop.streams import StreamConfig

SIZE = 64


def enlarged(samples: Samples) -> Samples:
    """Return samples with images of 64 px; a part at a time, since floats take four times the memory."""
    parts = [F.interpolate(part.float(), (SIZE, SIZE), mode="bilinear") for part in samples.x.split(1000)]
    return Samples(torch.cat([part.round().byte() for part in parts]), samples.y)


@cache
def sets() -> tuple[Samples, Samples, tuple[str, ...]]:
    """Return training set, test set and classes, read once for all seeds."""
    train, test, classes = images(CIFAR10, folder_of(CIFAR10, None).resolve())
    return enlarged(train), enlarged(test), classes


def split_cifar10_64px(seed: int) -> Stream:
    train, test, classes = sets()
    spec = Spec((3, SIZE, SIZE), classes, mean=CIFAR10.mean, std=CIFAR10.std)
    return Stream("split-cifar10-64px", spec, train, {"clean": test}, StreamConfig(tasks=5), seed)
