"""Images that a list names, a row per image: its path, its label and, where they are known, its groups.

A list comes from a table (`csv_images`) or from the layout of a published data set (`published`).
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from droptop.data import columns
from droptop.data.checks import check_images
from droptop.data.image_cache import silent
from droptop.data.image_folders import ImageFolder, hold_out
from droptop.data.root import FileProgress
from droptop.errors import BadRequest, all_refusals

TRAIN = ""  # the name of the training images among the parts


class Listing(NamedTuple):
    """Hold the rows of a list."""

    place: str  # for messages
    home: Path  # what the names are relative to
    names: Sequence[str]
    labels: Sequence[str]
    parts: Mapping[str, Sequence[int]]  # rows of the training images, by `TRAIN`, and of each test set by its name
    where: Callable[[int], str]  # where a row stands, for messages


class ListedImages(NamedTuple):
    """Hold training images and test sets, by name."""

    train: ImageFolder
    tests: dict[str, ImageFolder]


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
        return ListedImages(train, {name: part(rows) for name, rows in parts.items()})
    for name, rows in zip(classes, train.rows_of):
        if len(rows) == 1:
            where = listing.where(training[rows[0]])
            raise BadRequest(f"{where}: class {name} has one image, and {place} no test images: none can be held out")
    train, test = hold_out(train)
    return ListedImages(train, {"test": test})


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
    rows = [
        (part_name, name, part.classes[part.labels[row]], part.path(row).stat().st_size)
        for part_name, part in ((TRAIN, listed.train), *listed.tests.items())
        for row, name in enumerate(part.names)
    ]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
