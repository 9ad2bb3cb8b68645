"""Split CIFAR-10 with pixels from 0 to 1, not normalised, as RaptorMai/online-continual-learning has them.

For as-named-cifar10.toml and as-named-gss-cifar10.toml. Images are read from the folder that DROPTOP_DATA names, else
from ./data.
"""

from droptop import Spec, Stream
from droptop.data.cifar import CIFAR10, SHAPE, folder_of, images
from droptop.streams import StreamConfig


def split_cifar10_unit(seed: int) -> Stream:
    train, test, classes = images(CIFAR10, folder_of(CIFAR10, None).resolve())
    spec = Spec(SHAPE, classes, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    return Stream("split-cifar10-unit", spec, train, {"clean": test}, StreamConfig(tasks=5, class_order="random"), seed)
