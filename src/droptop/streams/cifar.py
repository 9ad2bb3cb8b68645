"""Split CIFAR-10 and Split CIFAR-100: five tasks of 2 and of 20 classes; one test set, `clean`."""

from pathlib import Path

from droptop.data.cifar import CIFAR10, CIFAR100, SHAPE, CifarFiles, folder_of, images
from droptop.streams.stream import Stream, StreamConfig
from droptop.types import Spec

# Appendix E of the paper; with the 3x3 stem the last map is larger than one cell.
PRESET = {"width": 64, "stem": "3x3", "lr": 0.1, "memory": 500, "augment": "crop-flip"}
PRESET_100 = PRESET | {"memory": 2000}


def split_cifar10(config: StreamConfig, seed: int, limit: int | None = None, root: Path | None = None) -> Stream:
    return _stream("split-cifar10", CIFAR10, config, seed, limit, root)


def split_cifar100(config: StreamConfig, seed: int, limit: int | None = None, root: Path | None = None) -> Stream:
    return _stream("split-cifar100", CIFAR100, config, seed, limit, root)


def _stream(
    name: str, files: CifarFiles, config: StreamConfig, seed: int, limit: int | None, root: Path | None
) -> Stream:
    train, test, classes = images(files, folder_of(files, root).resolve())
    spec = Spec(SHAPE, classes, mean=files.mean, std=files.std)
    return Stream(name, spec, train, {"clean": test}, config, seed, limit)
