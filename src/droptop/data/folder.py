"""A user's own images below one folder: training and test images, further test sets, masks.

The layout of the folder is described in `image_folders`, that of masks in `scenes`.
"""

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from droptop.data.checks import check_images, check_scenes
from droptop.data.image_cache import ImageSet, silent
from droptop.data.image_folders import FURTHER, ImageFolder, read_tree
from droptop.data.root import FileProgress
from droptop.data.scenes import MASK, Scenes, plain, read_boxes
from droptop.data.variants import VARIANTS
from droptop.errors import BadRequest, all_refusals


class UserTree(NamedTuple):
    """Hold the training and test images of a user's folder."""

    place: Path
    train: ImageFolder
    test: ImageFolder
    more: dict[str, ImageFolder]  # further test sets by name

    @property
    def everything(self) -> tuple[ImageFolder, ...]:
        """Return all parts: training images, test images, and further test sets."""
        return (self.train, self.test, *self.more.values())


def read_user_tree(path: str) -> UserTree:
    """Return the images of a folder; refuse a single class, and test sets whose names are taken."""
    place = Path(path).expanduser()
    train, test, more = read_tree(place)
    if len(train.classes) == 1:
        raise BadRequest(f"{place / 'train'} holds one class, {train.classes[0]}: a stream has two at least")
    for name in more.keys() & {"", "test", "original", *VARIANTS}:
        raise BadRequest(f"{place / FURTHER}{name} needs another name: {name or 'an empty one'} is taken")
    return UserTree(place, train, test, more)


def image_sets(tree: UserTree, size: int) -> tuple[tuple[ImageSet, Tensor], dict[str, tuple[ImageSet, Tensor]]]:
    """Return how to make the training images and each test set at `size` pixels per side, each with its labels."""
    place, test = tree.place, tree.test
    scenes = scenes_of(place, test)
    if scenes is None:
        tests = {"test": plain(test, size, f"{place}, test")}
    else:
        scenes.complete()
        tests = {"original": plain(test, size, f"{place}, test")}
        for variant in VARIANTS:
            tests[variant] = scenes.image_set(variant, range(len(test)), size, f"{place}, {variant}")
    labelled = {name: (images, test.y) for name, images in tests.items()}
    labelled |= {name: (plain(part, size, f"{place}, {name}"), part.y) for name, part in tree.more.items()}
    return (plain(tree.train, size, f"{place}, training"), tree.train.y), labelled


def mask_sets(tree: UserTree, size: int) -> tuple[tuple[ImageSet, Tensor], tuple[ImageSet, Tensor]] | None:
    """Return how to make the masks of training and test images, each with labels; None where the folder has none.

    Refuse images without a mask.
    """
    place, parts = tree.place, (tree.train, tree.test)
    found = [scenes for part in parts if (scenes := scenes_of(place, part)) is not None]
    sets = [
        (scenes.complete().image_set(MASK, range(len(scenes.part)), size, f"{place}, masks"), scenes.part.y)
        for scenes in found
    ]
    return (sets[0], sets[1]) if sets else None


def version(path: str) -> str | None:
    """Return the SHA-256 of the names and sizes of the images of a folder, by which a run knows them.

    None where there is no such folder.
    """
    try:
        parts = [
            (name, part.path(row).stat().st_size)
            for part in read_user_tree(path).everything
            for row, name in enumerate(part.names)
        ]
    except (BadRequest, OSError):
        return None
    return hashlib.sha256(json.dumps(sorted(parts)).encode()).hexdigest()


def where(path: str) -> str:
    """Return the folder and how many images are in it; read none of them."""
    tree = read_user_tree(path)
    counts = " + ".join(f"{len(part):,}" for part in tree.everything)
    return f"{tree.place}, {counts} images of {len(tree.train.classes)} classes"


def scenes_of(place: Path, part: ImageFolder) -> Scenes | None:
    """Return a part with its masks, or None where the tree has none."""
    return Scenes(part, place, read_boxes(place)) if (place / "masks").is_dir() else None


def check(path: str, progress: FileProgress = silent) -> str:
    """Read every image and mask and return a line per part; refuse the folder with everything that is wrong."""
    tree = read_user_tree(path)
    lines = []
    with all_refusals() as trying:
        for name, part in (("training", tree.train), ("test", tree.test), *tree.more.items()):
            with trying():
                lines.append(check_images(part, name, progress))
        with trying():
            if (scenes := scenes_of(tree.place, tree.test)) is not None:
                lines.append(check_scenes(scenes, "test masks", progress))
    return "\n".join(lines)
