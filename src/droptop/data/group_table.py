"""Groups of a user's images: `groups.csv` in their folder, a row per image.

    path,background,camera
    test/cat/1.jpg,water,phone

Paths are relative to the folder. Every test image has a row; training images may have one, and each column but `path`
is one of groups.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import torch

from droptop.data.csv_tables import Table, read_table
from droptop.data.image_folders import ImageFolder
from droptop.errors import BadRequest
from droptop.escapes import visible
from droptop.groups import Groups, coded

FILE = "groups.csv"
PATH = "path"
SHOWN = 3  # groups that a note names


class GroupTable(NamedTuple):
    """Hold the rows of a file of groups."""

    table: Table
    row_of: dict[str, int]  # by the relative path of an image

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns of groups."""
        return [name for name in self.table.columns if name != PATH]

    def of(self, part: ImageFolder) -> dict[str, Groups]:
        """Return the groups of the images of a part, by column; refuse a part with an image that has no row."""
        missing = [name for name in part.names if name not in self.row_of]
        if missing:
            more = f", and for {len(missing) - 1:,} more" if len(missing) > 1 else ""
            raise BadRequest(f"{self.table.path} has no row for {missing[0]}{more}: every test image needs one")
        rows = [self.row_of[name] for name in part.names]
        values = {column: self.table.columns[column] for column in self.columns}
        return {name: coded(name, [of[row] for row in rows], torch.device("cpu")) for name, of in values.items()}

    def covers(self, part: ImageFolder) -> bool:
        """Return whether every image of a part has a row."""
        return all(name in self.row_of for name in part.names)

    def note_unseen(self, train: ImageFolder, tests: Sequence[ImageFolder]) -> None:
        """Warn of groups that test images are in and training images are not, if any of these has a row."""
        seen, tested = (
            [self.row_of[name] for part in parts for name in part.names if name in self.row_of]
            for parts in ([train], tests)
        )
        for column in self.columns if seen else ():
            values = self.table.columns[column]
            note_unseen(column, {values[row] for row in seen}, {values[row] for row in tested}, str(self.table.path))


def note_unseen(column: str, seen: set[str], tested: set[str], place: str) -> None:
    """Warn of the groups of a column that test images are in and training images are not, if there are any."""
    if unseen := sorted(tested - seen):
        named = ", ".join(unseen[:SHOWN]) + (", ..." if len(unseen) > SHOWN else "")
        where = f"{place}: no training image is in {len(unseen)} of the groups by {column}: {named}"
        warnings.warn(visible(where), stacklevel=2)


def read_groups(place: Path) -> GroupTable | None:
    """Return the groups of the images of a folder, None where it has no such file; refuse one with a wrong row."""
    path = place / FILE
    if not path.exists():
        return None
    table = read_table(path)
    columns = [name for name in table.columns if name != PATH]
    if PATH not in table.columns or not columns:
        raise BadRequest(f"{path} takes a column {PATH} and one or more of groups, not {', '.join(table.columns)}")
    for column in columns:
        if "=" in column:
            raise BadRequest(f"{path}: columns of groups have names without =, not {column}")
        if "" in table.columns[column]:
            raise BadRequest(f"{table.line(table.columns[column].index(''))}, has no {column}")
    row_of: dict[str, int] = {}
    unknown = []
    for row, text in enumerate(table.columns[PATH]):
        name = str(PurePosixPath(text.replace("\\", "/")))
        if name in row_of:
            raise BadRequest(f"{table.line(row)}, names {text} again, which stands in line {table.lines[row_of[name]]}")
        row_of[name] = row
        if not text or not (place / name).is_file():
            unknown.append(row)
    if unknown:
        text = table.columns[PATH][unknown[0]] or "nothing"
        more = f"; {len(unknown) - 1:,} more rows do" if len(unknown) > 1 else ""
        raise BadRequest(f"{table.line(unknown[0])}, names {text}, which is no file of {place}{more}")
    return GroupTable(table, row_of)
