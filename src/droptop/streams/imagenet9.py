"""Split ImageNet-9: four tasks, as in the paper. `data/imagenet9.py` says where the images lie.

The tasks are (dog, bird), (vehicle, reptile), (carnivore, insect), (instrument, fish).
"""

from dataclasses import dataclass
from pathlib import Path

from droptop.data.image_cache import load_images, read_once
from droptop.data.imagenet9 import TAUGHT, ImageNet9Files
from droptop.data.variants import BACKGROUND_TELLS
from droptop.streams.folder import MEAN, STD, ImageConfig, loaded_masks
from droptop.streams.painted import Masks
from droptop.streams.stream import Stream
from droptop.types import Source, Spec


@dataclass(frozen=True)
class TinyImageNet9Config(ImageConfig):
    """Hold the options of `split-tiny-imagenet9`."""

    tasks: int = 4
    """Number of tasks the classes are split into, evenly."""


@dataclass(frozen=True)
class ImageNet9Config(TinyImageNet9Config):
    """Hold the options of `split-imagenet9`."""

    image_size: int = 224
    """Pixels per side: images are scaled until their shorter side fits, then cropped to their centre."""


def split_imagenet9(
    files: ImageNet9Files,
    variant: str,
    config: ImageConfig,
    seed: int,
    limit: int | None = None,
    root: Path | None = None,
) -> Stream:
    """Return the stream that trains on a variant and tests on every test set that can be had."""
    name, size, room = files.stream_name(variant), config.image_size, config.room

    def sources() -> tuple[Source, dict[str, Source]]:
        training, tests = files.image_sets(variant, size, root)
        return load_images(*training, room), {test: load_images(*made, room) for test, made in tests.items()}

    images, tests = read_once((name, root, size, config.in_memory_mb), sources)
    spec = Spec((3, size, size), tuple(folder[3:] for folder in TAUGHT), mean=MEAN, std=STD)
    cue = {variant: True} | (BACKGROUND_TELLS if BACKGROUND_TELLS.get(variant) else {})
    known = {test: has for test, has in cue.items() if test in tests}

    def masks() -> Masks | None:
        sets = files.mask_sets(size, root)
        return None if sets is None else loaded_masks(sets, config)

    return Stream(name, spec, images, tests, config, seed, limit, masks, known)
