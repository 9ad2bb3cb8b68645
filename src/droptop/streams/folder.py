"""A user's own images as a stream, `folder:PATH`.

Its test set is called test; folders test-NAME are further test sets, such as the same objects without a logo. Where
there are masks, there is a test set per background variant, which shows whether a learner relies on backgrounds.
"""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from droptop.data.folder import image_sets, mask_sets, read_user_tree
from droptop.data.image_cache import ImageSet, Room, load_images, read_once
from droptop.data.variants import BACKGROUND_TELLS, VARIANTS
from droptop.errors import require
from droptop.results.cue_sets import cue_by_name
from droptop.streams.painted import Masks
from droptop.streams.stream import Stream, StreamConfig
from droptop.types import Source, Spec

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's customary figures
# The paper's optimiser and memory. The stem leaves a first map of 32 x 32 and a last one of 4 x 4 at 64 px; with
# pooling, of 56 x 56 and 7 x 7 at 224 px.
PRESET = {"stem": "7x7/2", "lr": 0.1, "memory": 500, "augment": "crop-flip"}
PRESET_224 = PRESET | {"stem": "7x7/2-pool"}
NARROW = 16  # channels of a net that a person can wait for on a CPU
# At 64 px a step of ER costs a core 98 ms with 16 channels and 1,071 ms with 64; fewer pixels could hide a small cue.
ON_CPU = {"width": NARROW}


@dataclass(frozen=True)
class ImageConfig(StreamConfig):
    """Hold the options of a stream whose images are decoded from files."""

    image_size: int = 64
    """Pixels per side: images are scaled until their shorter side fits, then cropped to their centre."""
    in_memory_mb: int = 1024
    """MiB of decoded images to hold in the machine's memory, training images first; the others are read from the
    disk."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(8 <= self.image_size <= 1024, "image_size", "a number of pixels from 8 to 1024", self.image_size)
        require(self.in_memory_mb >= 0, "in_memory_mb", "a number of MiB from 0", self.in_memory_mb)

    @property
    def room(self) -> Room:
        """Return the memory that decoded images may take."""
        return Room(self.in_memory_mb * 2**20)


@dataclass(frozen=True)
class FolderConfig(ImageConfig):
    """Hold the options of `folder:PATH`."""

    tasks: int = 0
    """Number of tasks the classes are split into, evenly; 0: two classes per task."""


def folder(path: str, config: FolderConfig, seed: int, limit: int | None = None, root: Path | None = None) -> Stream:
    """Return the stream of a folder's images."""
    key = (path, config.image_size, config.in_memory_mb, config.hold_out > 0)
    spec, images, tests = read_once(key, lambda: sources(path, config))
    cue = BACKGROUND_TELLS | cue_by_name(test for test in tests if test not in VARIANTS)
    known = {test: has for test, has in cue.items() if test in tests}

    def masks() -> Masks | None:
        sets = mask_sets(read_user_tree(path), config.image_size)
        return None if sets is None else loaded_masks(sets, config)

    return Stream(f"folder:{path}", spec, images, tests, config, seed, limit, masks, known)


def loaded_masks(sets: tuple[tuple[ImageSet, Tensor], tuple[ImageSet, Tensor]], config: ImageConfig) -> Masks:
    """Return the masks of training and test images, in as much memory as images may take."""
    room = config.room
    return Masks(*(load_images(*made, room) for made in sets))


def sources(path: str, config: FolderConfig) -> tuple[Spec, Source, dict[str, Source]]:
    """Return the spec of a folder's images, its training images and its test sets."""
    tree, room = read_user_tree(path), config.room
    training, tests = image_sets(tree, config.image_size)
    spec = Spec((3, config.image_size, config.image_size), tree.train.classes, mean=MEAN, std=STD)
    images = load_images(training.images, training.y, room, training.groups if config.hold_out else None)
    return spec, images, {name: load_images(test.images, test.y, room, test.groups) for name, test in tests.items()}
