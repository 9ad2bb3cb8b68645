"""A user's own images below one folder: training and test images, further test sets, masks.

The layout of the folder is described in `image_folders`, that of masks in `scenes`.
"""

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from droptop.data.checks import check_images, check_scenes
from droptop.data.group_table import FILE, GroupTable, read_groups
from droptop.data.image_cache import ImageSet, silent
from droptop.data.image_folders import FURTHER, ImageFolder, read_tree
from droptop.data.root import FileProgress
from droptop.data.scenes import MASK, Scenes, plain, read_boxes
from droptop.data.variants import VARIANTS
from droptop.errors import BadRequest, all_refusals
from droptop.groups import Groups
from droptop.system.files import sha256


class UserTree(NamedTuple):
    """Hold the training and test images of a user's folder, and their groups."""

    place: Path
    train: ImageFolder
    test: ImageFolder
    more: dict[str, ImageFolder]  # further test sets by name
    groups: GroupTable | None  # None where nobody says which image is in which group

    @property
    def everything(self) -> tuple[ImageFolder, ...]:
        """Return all parts: training images, test images, and further test sets."""
        return (self.train, self.test, *self.more.values())


def read_user_tree(path: str) -> UserTree:
    """Return the images of a folder; refuse a single class, test sets whose names are taken, and wrong groups."""
    place = Path(path).expanduser()
    train, test, more = read_tree(place)
    if len(train.classes) == 1:
        raise BadRequest(f"{place / 'train'} holds one class, {train.classes[0]}: a stream has two at least")
    for name in more.keys() & {"", "test", "original", *VARIANTS}:
        raise BadRequest(f"{place / FURTHER}{name} needs another name: {name or 'an empty one'} is taken")
    return UserTree(place, train, test, more, read_groups(place))


class Part(NamedTuple):
    """Hold how to make the images of a part, their labels, and their groups by column."""

    images: ImageSet
    y: Tensor
    groups: dict[str, Groups]


def image_sets(tree: UserTree, size: int) -> tuple[Part, dict[str, Part]]:
    """Return the training images and the test sets by name, at `size` pixels per side.

    Test images without a group are refused; training images have groups if all of them are in the file of groups.
    """
    place, test = tree.place, tree.test
    scenes = scenes_of(place, test)
    if scenes is None:
        tests = {"test": plain(test, size, f"{place}, test")}
    else:
        scenes.complete()
        tests = {"original": plain(test, size, f"{place}, test")}
        for variant in VARIANTS:
            tests[variant] = scenes.image_set(variant, range(len(test)), size, f"{place}, {variant}")
    table, further = tree.groups, tree.more
    groups = {name: table.of(part) for name, part in [("", test), *further.items()]} if table else {}
    parts = {name: Part(images, test.y, groups.get("", {})) for name, images in tests.items()}
    parts |= {
        name: Part(plain(part, size, f"{place}, {name}"), part.y, groups.get(name, {}))
        for name, part in further.items()
    }
    if table is not None:
        table.note_unseen(tree.train, [test, *further.values()])
    of_training = table.of(tree.train) if table is not None and table.covers(tree.train) else {}
    return Part(plain(tree.train, size, f"{place}, training"), tree.train.y, of_training), parts


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
    """Return the SHA-256 of the names and sizes of the images of a folder and of their groups, by which a run knows it.

    None where there is no such folder.
    """
    try:
        tree = read_user_tree(path)
        parts = [
            (name, part.path(row).stat().st_size) for part in tree.everything for row, name in enumerate(part.names)
        ]
        if tree.groups is not None:
            parts += [(f"{FILE} {sha256(tree.place / FILE)}", 0)]
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
        if tree.groups is not None:
            for part in (tree.test, *tree.more.values()):
                with trying():
                    tree.groups.of(part)
        for name, part in (("training", tree.train), ("test", tree.test), *tree.more.items()):
            with trying():
                lines.append(check_images(part, name, progress))
        with trying():
            if (scenes := scenes_of(tree.place, tree.test)) is not None:
                lines.append(check_scenes(scenes, "test masks", progress))
    return "\n".join(lines)
