"""Folders of images as people keep them: a folder per part (train, and test or val), in it a folder per class.

    FOLDER/train/CLASS/*.{jpg,jpeg,png,webp}
    FOLDER/test/CLASS/...       or val/; without either, 20% of each class are held out
    FOLDER/test-NAME/CLASS/...  a further test set, such as test-without-logo
    FOLDER/masks/...            optional: the same relative paths as .png, any value but 0 is foreground

Classes are the names of the folders, sorted. What is not taken is said in a warning per reason (`left_out.py`): hidden
files, images of other kinds, images outside of the folders of classes or below them, links that lead nowhere. Links are
followed, also out of the folder, which is said in the same way. Anything else that is odd is refused with the name of
the file or folder.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from droptop.data.left_out import (
    ARCHIVER,
    BROKEN,
    DEEPER,
    ENDINGS,
    HIDDEN,
    LINKED,
    MAC,
    OTHERS,
    OUTSIDE,
    LeftOut,
    images_below,
    is_file,
    is_folder,
    is_image,
    leads_out,
    looks_like_image,
)
from droptop.errors import BadRequest, is_text

HELD_OUT = 0.2
FURTHER = "test-"  # what the folders of further test sets begin with
LIKE_TESTS = ("test", "tests", "testing", "val", "valid", "validation", "dev", "eval")  # in any case


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


def listing(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder, sorted by name; refuse one that cannot be read."""
    try:
        with os.scandir(folder) as scan:
            return sorted(scan, key=lambda entry: entry.name)
    except OSError as error:
        raise BadRequest(f"{folder}: {error.strerror}") from None


def taken(folder: Path, name: str) -> str:
    """Return the name of a class or an image; refuse one that is not UTF-8."""
    if not is_text(name):
        raise BadRequest(f"{folder} holds a name that is not in UTF-8: {os.fsencode(name)!r}")
    return name


def entries(folder: Path, wanted: Callable[[os.DirEntry[str]], bool]) -> list[str]:
    """Return the sorted names in a folder that are wanted and not hidden; refuse names that are not UTF-8."""
    found = [entry.name for entry in listing(folder) if not entry.name.startswith(".") and wanted(entry)]
    return [taken(folder, name) for name in found]


def read_part(folder: Path, left_out: LeftOut | None = None) -> ImageFolder:
    """Return the images of a part, a folder of class folders; refuse empty folders.

    What is not taken is added to `left_out`, or else said in a warning per reason.
    """
    noted = LeftOut(folder.parent) if left_out is None else left_out
    if folder.is_symlink() and leads_out(folder, noted.home):
        noted.add(LINKED, folder)
    classes = [taken(folder, name) for name in class_names(folder, noted)]
    names: list[str] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        images = [taken(folder / name, image) for image in image_names(folder / name, noted)]
        names += [f"{folder.name}/{name}/{image}" for image in images]
        labels += [label] * len(images)
    if not names:
        raise BadRequest(f"{folder} holds no images: they belong in {folder}/CLASS/")
    if left_out is None:
        noted.note()
    return ImageFolder(folder.parent, tuple(classes), tuple(names), tuple(labels))


def visible(folder: Path, left_out: LeftOut) -> Iterator[os.DirEntry[str]]:
    """Yield what is in a folder, but what nobody put there as data: hidden, of an archiver, or a link to nowhere."""
    for entry in listing(folder):
        if entry.name.startswith("."):
            left_out.add(HIDDEN, Path(entry.path))
        elif is_folder(entry) and entry.name == ARCHIVER:
            left_out.add(MAC, Path(entry.path))
        elif not is_folder(entry) and not is_file(entry):
            left_out.add(BROKEN, Path(entry.path))
        else:
            if entry.is_symlink() and leads_out(entry.path, left_out.home):
                left_out.add(LINKED, Path(entry.path))
            yield entry


def class_names(folder: Path, left_out: LeftOut) -> list[str]:
    """Return the names of the folders of classes in that of a part."""
    names = []
    for entry in visible(folder, left_out):
        if is_folder(entry):
            names.append(entry.name)
        elif looks_like_image(entry.name):
            left_out.add(OUTSIDE, Path(entry.path))
    return names


def image_names(folder: Path, left_out: LeftOut) -> list[str]:
    """Return the names of the images in the folder of a class; refuse one without images."""
    names = []
    deeper: list[Path] = []
    for entry in visible(folder, left_out):
        if is_folder(entry):
            deeper += images_below(entry.path)
        elif is_image(entry.name):
            names.append(entry.name)
        elif looks_like_image(entry.name):
            left_out.add(OTHERS, Path(entry.path))
    if deeper:
        left_out.add(DEEPER, deeper[0], len(deeper))
    if not names:
        where = f"; {len(deeper):,} lie deeper, such as {os.path.relpath(deeper[0], folder)}" if deeper else ""
        raise BadRequest(f"{folder} holds no images ({', '.join(ENDINGS)}){where}")
    return names


def read_tree(folder: Path) -> tuple[ImageFolder, ImageFolder, dict[str, ImageFolder]]:
    """Return training images, test images, and further test sets by name."""
    if not folder.is_dir():
        raise BadRequest(f"{folder} is not {'a' if folder.exists() else 'an existing'} folder")
    if not (folder / "train").is_dir():
        raise BadRequest(f"{folder} has no folder train: images belong in {folder}/train/CLASS/")
    left_out = LeftOut(folder)
    train, folders = read_part(folder / "train", left_out), entries(folder, is_folder)
    further = [name for name in folders if name.startswith(FURTHER)]
    more = {name.removeprefix(FURTHER): test_part(folder / name, train, left_out) for name in further}
    tests = [folder / name for name in ("test", "val") if (folder / name).is_dir()]
    if tests:
        test = test_part(tests[0], train, left_out)
    else:
        train, test = hold_out(train)
        for name in [name for name in folders if name.lower() in LIKE_TESTS]:
            left_out.add("left out, a fifth of each class being held out for want of test or val: folders", name)
    if ARCHIVER in folders:
        left_out.add(MAC, ARCHIVER)
    for name, rows in zip(train.classes, train.rows_of):
        if len(rows) == 1:
            left_out.add("classes with one training image", name)
    left_out.note()
    return train, test, more


def test_part(folder: Path, train: ImageFolder, left_out: LeftOut) -> ImageFolder:
    """Return the test images of a folder; refuse one with other classes than the training images have."""
    part = read_part(folder, left_out)
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
