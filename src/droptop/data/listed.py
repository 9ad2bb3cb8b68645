"""Images that a list names, a row per image: its path, its label and, where they are known, its groups.

A list comes from a table (`csv_images`) or from the layout of a published data set (`published`).
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from droptop.data import columns
from droptop.data.checks import check_images
from droptop.data.group_table import note_unseen
from droptop.data.image_cache import silent
from droptop.data.image_folders import ImageFolder, hold_out
from droptop.data.root import FileProgress
from droptop.errors import BadRequest, all_refusals
from droptop.groups import Groups, coded

TRAIN = ""  # the name of the training images among the parts


class Listing(NamedTuple):
    """Hold the rows of a list."""

    place: str  # for messages
    home: Path  # what the names are relative to
    names: Sequence[str]
    labels: Sequence[str]
    parts: Mapping[str, Sequence[int]]  # rows of the training images, by `TRAIN`, and of each test set by its name
    where: Callable[[int], str]  # where a row stands, for messages
    groups: Mapping[str, Sequence[str]] = {}  # the group of each row by column; empty where it is not known


class ListedImages(NamedTuple):
    """Hold training images and test sets, by name, and the groups of each by column."""

    train: ImageFolder
    tests: dict[str, ImageFolder]
    groups: dict[str, dict[str, Groups]]  # by the name of the part


def images_of(listing: Listing) -> ListedImages:
    """Return the images of a list; a fifth of each class is held out where there is no test set.

    Refuse one class, classes without training images, and a class of which none can be held out. Images are in the
    order of their names, so that the order of the rows does not matter.
    """
    place, names, labels = listing.place, listing.names, listing.labels
    parts = {name: sorted(rows, key=names.__getitem__) for name, rows in listing.parts.items()}
    training = parts.pop(TRAIN)
    classes = columns.classes_of(labels[row] for row in training)
    if len(classes) < 2:
        raise BadRequest(f"{place} has training images of one class, {classes[0]}: a stream has two at least")
    number = {name: label for label, name in enumerate(classes)}
    for name, rows in parts.items():
        for row in rows:
            if labels[row] not in number:
                raise BadRequest(
                    f"{listing.where(row)}: class {labels[row]} is in {name} and not in the training images"
                )

    def part(rows: Sequence[int]) -> ImageFolder:
        chosen, numbers = tuple(names[row] for row in rows), tuple(number[labels[row]] for row in rows)
        return ImageFolder(listing.home, classes, chosen, numbers)

    train = part(training)
    if parts:
        rows_of = {TRAIN: training} | parts
        tests = {name: part(rows) for name, rows in parts.items()}
        return ListedImages(train, tests, groups_of(rows_of, listing.groups, place, listing.where))
    for name, rows in zip(classes, train.rows_of):
        if len(rows) == 1:
            where = listing.where(training[rows[0]])
            raise BadRequest(f"{where}: class {name} has one image, and {place} no test images: none can be held out")
    row_of = {names[row]: row for row in training}
    train, test = hold_out(train)
    rows_of = {TRAIN: [row_of[name] for name in train.names], "test": [row_of[name] for name in test.names]}
    return ListedImages(train, {"test": test}, groups_of(rows_of, listing.groups, place, listing.where))


def groups_of(
    rows_of: Mapping[str, Sequence[int]], groups: Mapping[str, Sequence[str]], place: str, where: Callable[[int], str]
) -> dict[str, dict[str, Groups]]:
    """Return the groups of each part by column; refuse a test image without a group.

    Training images have those of a column if all are known. A note names groups that are in no training image.
    """
    made: dict[str, dict[str, Groups]] = {part: {} for part in rows_of}
    for column, values in groups.items():
        of_part = {part: [values[row] for row in rows] for part, rows in rows_of.items()}
        for part, own in of_part.items():
            if "" not in own:
                made[part][column] = coded(column, own, torch.device("cpu"))
            elif part != TRAIN:
                raise BadRequest(f"{where(rows_of[part][own.index('')])}, has no {column}")
        seen = set(of_part.pop(TRAIN))
        if "" not in seen:
            note_unseen(column, seen, {name for own in of_part.values() for name in own}, place)
    return made


def where(listed: ListedImages, place: str) -> str:
    """Return a place and how many images it has."""
    counts = " + ".join(f"{len(part):,}" for part in (listed.train, *listed.tests.values()))
    return f"{place}, {counts} images of {len(listed.train.classes)} classes"


def check(listed: ListedImages, progress: FileProgress = silent) -> str:
    """Read every image and return a line per part; refuse the list with every image that does not decode."""
    lines = []
    with all_refusals() as trying:
        for name, part in (("training", listed.train), *listed.tests.items()):
            with trying():
                lines.append(check_images(part, name, progress))
    return "\n".join(lines)


def version(listed: ListedImages) -> str:
    """Return the SHA-256 of what is listed and of the sizes of the images, by which a run knows them."""
    rows: list[tuple[Any, ...]] = [
        (part_name, name, part.classes[part.labels[row]], part.path(row).stat().st_size)
        for part_name, part in ((TRAIN, listed.train), *listed.tests.items())
        for row, name in enumerate(part.names)
    ]
    rows += [
        (part, column, group, codes)
        for part, columns_of in listed.groups.items()
        for column, of in columns_of.items()
        for group, codes in [(",".join(of.names), of.codes.tolist())]
    ]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
