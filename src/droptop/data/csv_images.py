"""Images listed in a CSV file, a row per image: its path, its label and, where there is one, its split.

    path,label,split
    photos/1.jpg,dog,train
    /data/2.png,cat,test

Paths are relative to the folder of the file, and the order of the rows does not matter. Without a column of splits, a
fifth of each class is held out.
"""

import os
from pathlib import Path

from droptop.data import columns, listed
from droptop.data.columns import Columns
from droptop.data.csv_tables import Table, read_table
from droptop.data.image_cache import silent
from droptop.data.listed import TRAIN, ListedImages, Listing
from droptop.data.root import FileProgress
from droptop.errors import BadRequest, all_refusals


def read_csv(path: str, wanted: Columns = Columns()) -> ListedImages:
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
    taken = [name for name, cells in there.items() if cells is images or cells is labels or name == split]
    grouped = columns.group_columns(wanted.groups, there, taken, str(file))
    groups = {name: columns.crossed(name, there.__getitem__) for name in grouped}
    parts = rows_of_splits(table, split, wanted)
    return listed.images_of(Listing(str(file), home, names, labels, parts, table.line, groups))


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
    """Return the rows of the training images and of each test set by its name."""
    if split is None:
        for option, value in (("--train-split", wanted.train), ("--test-splits", wanted.tests)):
            if value is not None:
                raise BadRequest(f"{option} takes a file with a column of splits, such as split; {table.path} has none")
        return {TRAIN: list(range(len(table.lines)))}
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(table.columns[split]):
        rows.setdefault(name, []).append(row)
    if "" in rows:
        raise BadRequest(f"{table.line(rows[''][0])}, has no split")
    chosen = columns.splits_of(list(rows), wanted.train, wanted.tests, str(table.path))
    return {TRAIN: rows[chosen.train]} | {name: rows[part] for name, part in chosen.tests.items()}


def where(path: str) -> str:
    """Return the file and how many images it lists; read none of them."""
    return listed.where(read_csv(path), path)


def check(path: str, progress: FileProgress = silent, wanted: Columns = Columns()) -> str:
    """Read every image and return a line per part; refuse the file with every image that does not decode."""
    return listed.check(read_csv(path, wanted), progress)


def version(path: str, wanted: Columns = Columns()) -> str | None:
    """Return the SHA-256 of what is listed and of the sizes of the images; None where the file cannot be read."""
    try:
        return listed.version(read_csv(path, wanted))
    except (BadRequest, OSError):
        return None
