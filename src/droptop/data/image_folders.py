"""Folders of images as people keep them: a folder per part (train, and test or val), in it a folder per class.

    FOLDER/train/CLASS/*.{jpg,jpeg,png,webp}
    FOLDER/test/CLASS/...       or val/; without either, 20% of each class are held out
    FOLDER/test-NAME/CLASS/...  a further test set, such as test-without-logo
    FOLDER/masks/...            optional: the same relative paths as .png, any value but 0 is foreground

Classes are the names of the folders, sorted. Hidden files and files with other endings are left out, with a warning
where they are images. Anything else that is odd is refused with the name of the file or folder.
"""

import hashlib
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import torch
from PIL import Image
from torch import Tensor

from droptop.errors import BadRequest, is_text

ENDINGS = (".jpg", ".jpeg", ".png", ".webp")
HELD_OUT = 0.2
FURTHER = "test-"  # what the folders of further test sets begin with


@dataclass(frozen=True)
class ImageFolder:
    """List the images of one part. It holds names and not paths, since there may be millions."""

    home: Path  # names are relative to it
    classes: tuple[str, ...]
    names: tuple[str, ...]  # such as train/dog/1.jpg
    labels: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.names)

    def path(self, row: int) -> Path:
        """Return the file of an image."""
        return self.home / self.names[row]

    def stem(self, row: int) -> str:
        """Return the name of an image without its ending, by which its mask and box are found."""
        return str(PurePosixPath(self.names[row]).with_suffix(""))

    @cached_property
    def y(self) -> Tensor:
        """Return the labels of all rows."""
        return torch.tensor(self.labels)

    @cached_property
    def rows_of(self) -> list[list[int]]:
        """Return the rows of each class."""
        rows: list[list[int]] = [[] for _ in self.classes]
        for row, label in enumerate(self.labels):
            rows[label].append(row)
        return rows

    def select(self, rows: Sequence[int]) -> "ImageFolder":
        """Return a list of some of the images."""
        return ImageFolder(
            self.home, self.classes, tuple(self.names[row] for row in rows), tuple(self.labels[row] for row in rows)
        )


def entries(folder: Path, wanted: Callable[[os.DirEntry[str]], bool]) -> list[str]:
    """Return the sorted names in a folder that are wanted and not hidden; refuse names that are not UTF-8."""
    try:
        with os.scandir(folder) as scan:
            names = sorted(entry.name for entry in scan if not entry.name.startswith(".") and wanted(entry))
    except OSError as error:
        raise BadRequest(f"{folder}: {error.strerror}") from None
    for name in names:
        if not is_text(name):
            raise BadRequest(f"{folder} holds a name that is not in UTF-8: {os.fsencode(name)!r}")
    return names


def read_part(folder: Path) -> ImageFolder:
    """Return the images of a part, a folder of class folders; refuse empty folders."""
    classes = entries(folder, lambda entry: entry.is_dir())
    names: list[str] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        images = entries(folder / name, lambda entry: entry.name.lower().endswith(ENDINGS) and entry.is_file())
        note_other_images(folder / name)
        if not images:
            raise BadRequest(f"{folder / name} holds no images ({', '.join(ENDINGS)})")
        names += [f"{folder.name}/{name}/{image}" for image in images]
        labels += [label] * len(images)
    if not names:
        raise BadRequest(f"{folder} holds no images: they belong in {folder}/CLASS/")
    return ImageFolder(folder.parent, tuple(classes), tuple(names), tuple(labels))


def note_other_images(folder: Path) -> None:
    """Warn of images that are left out because of their endings, if there are any."""
    readable = {ending for ending, kind in Image.registered_extensions().items() if kind in Image.OPEN}
    others = entries(folder, lambda entry: Path(entry.name).suffix.lower() in readable.difference(ENDINGS))
    if others:
        endings = sorted({Path(name).suffix.lower() for name in others})
        warnings.warn(
            f"{folder}: {len(others):,} images are left out, since they end in {', '.join(endings)} and not "
            f"in {', '.join(ENDINGS)}",
            stacklevel=2,
        )


def read_tree(folder: Path) -> tuple[ImageFolder, ImageFolder, dict[str, ImageFolder]]:
    """Return training images, test images, and further test sets by name."""
    if not folder.is_dir():
        raise BadRequest(f"{folder} is not {'a' if folder.exists() else 'an existing'} folder")
    if not (folder / "train").is_dir():
        raise BadRequest(f"{folder} has no folder train: images belong in {folder}/train/CLASS/")
    train = read_part(folder / "train")
    more = {
        name.removeprefix(FURTHER): test_part(folder / name, train)
        for name in entries(folder, lambda entry: entry.name.startswith(FURTHER) and entry.is_dir())
    }
    tests = [folder / name for name in ("test", "val") if (folder / name).is_dir()]
    return (train, test_part(tests[0], train), more) if tests else (*hold_out(train), more)


def test_part(folder: Path, train: ImageFolder) -> ImageFolder:
    """Return the test images of a folder; refuse one with other classes than the training images have."""
    part = read_part(folder)
    same_classes(folder.parent / "train", train.classes, folder, part.classes)
    return part


def same_classes(here: Path, ours: Sequence[str], there: Path, theirs: Sequence[str]) -> None:
    """Raise BadRequest if the classes of two folders differ, with the classes that only one of them has."""
    differences = [
        f"{', '.join(sorted(set(some) - set(others)))} only in {where}"
        for some, others, where in ((ours, theirs, here), (theirs, ours, there))
        if set(some) - set(others)
    ]
    if differences:
        raise BadRequest(f"{here} and {there} have different classes: {'; '.join(differences)}")


def hold_out(part: ImageFolder) -> tuple[ImageFolder, ImageFolder]:
    """Split a part in training and test images, a fifth of each class for testing.

    So the split is the same for every seed, and nearly the same after images are added.
    """
    held: set[int] = set()
    for name, rows in zip(part.classes, part.rows_of):
        if len(rows) == 1:
            raise BadRequest(
                f"{part.home}/train/{name} holds one image, and there is neither test nor val: none can be held out"
            )
        held |= set(fifth(rows, part.names.__getitem__))
    return (part.select([row for row in range(len(part)) if row not in held]), part.select(sorted(held)))


def fifth(rows: Sequence[int], name: Callable[[int], str]) -> list[int]:
    """Return a fifth of some rows, one at least: those whose names have the smallest hashes."""
    by_hash = sorted(rows, key=lambda row: hashlib.sha256(name(row).encode()).digest())
    return by_hash[: max(1, round(HELD_OUT * len(rows)))]
