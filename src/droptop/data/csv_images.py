"""Images listed in a CSV file, a row per image: its path, its label and, where there is one, its split.

    path,label,split
    photos/1.jpg,dog,train
    /data/2.png,cat,test

Paths are relative to the folder of the file, and the order of the rows does not matter. Without a column of splits, a
fifth of each class is held out.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

from droptop.data import columns
from droptop.data.checks import check_images
from droptop.data.columns import Columns
from droptop.data.csv_tables import Table, read_table
from droptop.data.image_cache import silent
from droptop.data.image_folders import ImageFolder, hold_out
from droptop.data.root import FileProgress
from droptop.errors import BadRequest, all_refusals


class ListedImages(NamedTuple):
    """Hold training images and test sets, by name."""

    train: ImageFolder
    tests: dict[str, ImageFolder]


def read_listed(path: str, wanted: Columns = Columns()) -> ListedImages:
    """Return the images that a CSV file lists; refuse it with every row that is wrong."""
    file = Path(path).expanduser().absolute()
    table = read_table(file)
    there = table.columns
    images = there[columns.needed("image", wanted.image, columns.PATHS, there, str(file))]
    labels = there[columns.needed("label", wanted.label, columns.LABELS, there, str(file))]
    split = columns.column("split", wanted.split, columns.SPLITS, there, str(file))
    home = file.parent if wanted.folder is None else file.parent / Path(wanted.folder).expanduser()
    if not home.is_dir():
        raise BadRequest(f"--image-folder takes an existing folder; {home} is none")
    names = [os.path.relpath(home / Path(name).expanduser(), home) for name in images]
    check_rows(table, images, labels, names, home)
    splits = rows_of_splits(table, split, wanted)
    training = splits.pop("")
    classes = columns.classes_of(labels[row] for row in training)
    if len(classes) < 2:
        raise BadRequest(f"{file} has training images of one class, {classes[0]}: a stream has two at least")
    label_of = {name: label for label, name in enumerate(classes)}
    for name, rows in splits.items():
        for row in rows:
            if labels[row] not in label_of:
                raise BadRequest(f"{table.line(row)}: class {labels[row]} is in {name} and not in the training images")

    def part(rows: list[int]) -> ImageFolder:  # the order of the rows in the file does not matter
        rows = sorted(rows, key=names.__getitem__)
        return ImageFolder(
            home, classes, tuple(names[row] for row in rows), tuple(label_of[labels[row]] for row in rows)
        )

    tests = {name: part(rows) for name, rows in splits.items()}
    if tests:
        return ListedImages(part(training), tests)
    for name, rows in zip(classes, part(training).rows_of):
        if len(rows) == 1:
            raise BadRequest(
                f"{table.line(rows[0])}: class {name} has one image, and {file} no test images: none can be held out"
            )
    train, test = hold_out(part(training))
    return ListedImages(train, {"test": test})


def check_rows(table: Table, images: tuple[str, ...], labels: tuple[str, ...], names: list[str], home: Path) -> None:
    """Refuse rows without a path or label, with a path that is no file, and with the path of an earlier row."""
    first: dict[str, int] = {}
    with all_refusals() as trying:
        for row, name in enumerate(names):
            with trying():
                if not images[row] or not labels[row]:
                    raise BadRequest(f"{table.line(row)}, has no {'label' if images[row] else 'path'}")
                if name in first:
                    raise BadRequest(
                        f"{table.line(row)}, names {images[row]} again, which stands in line {table.lines[first[name]]}"
                    )
                first[name] = row
                if not (path := home / name).is_file():
                    raise BadRequest(f"{table.line(row)}: {path} is {'no file' if path.exists() else 'not there'}")


def rows_of_splits(table: Table, split: str | None, wanted: Columns) -> dict[str, list[int]]:
    """Return the rows of each test set by its name, and those of the training images by an empty one."""
    if split is None:
        for option, value in (("--train-split", wanted.train), ("--test-splits", wanted.tests)):
            if value is not None:
                raise BadRequest(f"{option} takes a file with a column of splits, such as split; {table.path} has none")
        return {"": list(range(len(table.lines)))}
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(table.columns[split]):
        rows.setdefault(name, []).append(row)
    if "" in rows:
        raise BadRequest(f"{table.line(rows[''][0])}, has no split")
    chosen = columns.splits_of(list(rows), wanted.train, wanted.tests, str(table.path))
    return {"": rows[chosen.train]} | {name: rows[part] for name, part in chosen.tests.items()}


def where(path: str) -> str:
    """Return the file and how many images it lists; read none of them."""
    train, tests = read_listed(path)
    counts = " + ".join(f"{len(part):,}" for part in (train, *tests.values()))
    return f"{path}, {counts} images of {len(train.classes)} classes"


def check(path: str, progress: FileProgress = silent) -> str:
    """Read every image and return a line per part; refuse the file with every image that does not decode."""
    train, tests = read_listed(path)
    lines = []
    with all_refusals() as trying:
        for name, part in (("training", train), *tests.items()):
            with trying():
                lines.append(check_images(part, name, progress))
    return "\n".join(lines)


def version(path: str, wanted: Columns = Columns()) -> str | None:
    """Return the SHA-256 of what is listed and of the sizes of the images, by which a run knows them.

    What else the file holds is no part of it. None where the file cannot be read.
    """
    try:
        train, tests = read_listed(path, wanted)
        listed = [
            (part_name, name, part.classes[part.labels[row]], part.path(row).stat().st_size)
            for part_name, part in (("", train), *tests.items())
            for row, name in enumerate(part.names)
        ]
    except (BadRequest, OSError):
        return None
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()
