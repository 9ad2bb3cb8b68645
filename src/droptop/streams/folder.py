"""A user's own images as a stream, `folder:PATH`: the tree's layout is in `tree`, that of masks in `scenes`.

Its test set is called test; folders test-NAME are further ones, such as the same objects without what may give them
away. With masks there is one for every background variant, and so an answer to the question whether a learner leans on
backgrounds.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from droptop.errors import BadRequest, all_refusals, require
from droptop.streams import cache
from droptop.streams.cache import Room
from droptop.streams.checks import check_images, check_scenes
from droptop.streams.root import Progress
from droptop.streams.scenes import Scenes, plain, read_boxes
from droptop.streams.stream import Source, Spec, Stream, StreamConfig
from droptop.streams.tree import FURTHER, Part, read_tree
from droptop.streams.variants import VARIANTS

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's customary figures
# The paper's optimiser and memory. The stem leaves a first map of 32 x 32 and a last one of 4 x 4 at 64 px; with
# pooling, of 56 x 56 and 7 x 7 at 224 px.
PRESET = {"stem": "7x7/2", "lr": 0.1, "memory": 500, "augment": "crop-flip"}
PRESET_224 = PRESET | {"stem": "7x7/2-pool"}


@dataclass(frozen=True)
class ImageConfig(StreamConfig):
    image_size: int = 64
    """Pixels a side: images are scaled until their shorter side fits, then cropped to their centre."""
    in_memory_mb: int = 1024
    """MiB of decoded images to hold in memory, training images first; the others are read from the disk."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(8 <= self.image_size <= 1024, "image_size", "a number of pixels from 8 to 1024", self.image_size)
        require(self.in_memory_mb >= 0, "in_memory_mb", "a number of MiB from 0", self.in_memory_mb)

    @property
    def room(self) -> Room:
        return Room(self.in_memory_mb * 2**20)


@dataclass(frozen=True)
class FolderConfig(ImageConfig):
    tasks: int = 0
    """Tasks the classes are split into, evenly; 0 for two classes a task."""


def folder(path: str, config: FolderConfig, seed: int, limit: int | None = None, root: Path | None = None) -> Stream:
    spec, images, tests = cache.once((path, config.image_size, config.in_memory_mb), lambda: sources(path, config))
    return Stream(f"folder:{path}", spec, images, tests, config, seed, limit)


def sources(path: str, config: FolderConfig) -> tuple[Spec, Source, dict[str, Source]]:
    """What its images are like, what to train on and what to test with."""
    (place, train, test, more), room, size = tree(path), config.room, config.image_size
    spec = Spec((3, size, size), train.classes, mean=MEAN, std=STD)
    images = cache.source(plain(train, size, f"{place}, training"), train.y, room)
    if (scenes := scenes_of(place, test)) is not None:
        scenes.complete()
    recipes = {"test" if scenes is None else "original": plain(test, size, f"{place}, test")}
    if scenes is not None:
        recipes |= {
            variant: scenes.recipe(variant, range(len(test)), size, f"{place}, {variant}") for variant in VARIANTS
        }
    tests = {name: cache.source(recipe, test.y, room) for name, recipe in recipes.items()}
    return (
        spec,
        images,
        tests
        | {name: cache.source(plain(part, size, f"{place}, {name}"), part.y, room) for name, part in more.items()},
    )


def tree(path: str) -> tuple[Path, Part, Part, dict[str, Part]]:
    """The folder, and its images for training and testing."""
    place = Path(path).expanduser()
    train, test, more = read_tree(place)
    if len(train.classes) == 1:
        raise BadRequest(f"{place / 'train'} holds one class, {train.classes[0]}: a stream has two at least")
    for name in more.keys() & {"", "test", "original", *VARIANTS}:
        raise BadRequest(f"{place / FURTHER}{name} needs another name: {name or 'an empty one'} is taken")
    return place, train, test, more


def files_of(data: str) -> str | None:
    """What a run knows the images of `folder:PATH` by: SHA-256 of their names and sizes. None of other streams, and
    where there is no such folder."""
    kind, _, path = data.partition(":")
    if kind != "folder":
        return None
    try:
        _, train, test, more = tree(path)
        parts = [
            (name, part.path(row).stat().st_size)
            for part in (train, test, *more.values())
            for row, name in enumerate(part.names)
        ]
    except (BadRequest, OSError):
        return None
    return hashlib.sha256(json.dumps(sorted(parts)).encode()).hexdigest()


def where(path: str) -> str:
    """The folder, and how many images are in it; none is read."""
    place, train, test, more = tree(path)
    counts = " + ".join(f"{len(part):,}" for part in (train, test, *more.values()))
    return f"{place}, {counts} images of {len(train.classes)} classes"


def scenes_of(place: Path, part: Part) -> Scenes | None:
    """A part with its masks, where the tree has any."""
    return Scenes(part, place, read_boxes(place)) if (place / "masks").is_dir() else None


def check(path: str, progress: Progress = cache.silent) -> str:
    """Whether a whole tree is in order, and what there is in it."""
    place, train, test, more = tree(path)
    said = []
    with all_refusals() as trying:
        for name, part in (("training", train), ("test", test), *more.items()):
            with trying():
                said.append(check_images(part, name, progress))
        with trying():
            if (scenes := scenes_of(place, test)) is not None:
                said.append(check_scenes(scenes, "test masks", progress))
    return "\n".join(said)
