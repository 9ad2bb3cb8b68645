"""Tables in text files, as spreadsheets and scripts write them: a line of column names, then a row per line.

Commas, semicolons or tabs separate the cells, whichever the first line has most of. The text is UTF-8, with or without
a byte order mark, or UTF-16 with one. Blank lines are left out, and spaces around a cell are no part of it.
"""

import codecs
import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from droptop.errors import BadRequest

SEPARATORS = ",;\t"
LONGEST_LINE = 1 << 20  # letters; a field of a million of them is not read into memory to be refused
MOST_COLUMNS = 10_000


class Table(NamedTuple):
    """Hold the cells of a table by column."""

    path: Path
    columns: dict[str, tuple[str, ...]]  # by name, in the order of the file
    lines: tuple[int, ...]  # the line of the file that each row ends in, from 1

    def line(self, row: int) -> str:
        """Return where a row stands, for messages."""
        return f"{self.path}, line {self.lines[row]}"


def read_table(path: Path) -> Table:
    """Return the table in a file; refuse a file that is no such table, has no rows, or repeats a column's name."""
    lines_of_file = text_of(path)
    first = next(lines_of_file, "")
    separator = max(SEPARATORS, key=first.count)
    rows = cells(chain([first], lines_of_file), separator, path)
    _, header = next(rows, (0, []))
    if not header:
        raise BadRequest(f"{path} is empty: its first line names columns, such as path,label")
    if len(header) > MOST_COLUMNS:
        raise BadRequest(f"{path}: the first line names {len(header):,} columns, more than {MOST_COLUMNS:,}")
    for name, count in Counter(header).items():
        if not name or count > 1:
            raise BadRequest(f"{path}: the first line names every column, each another, not {', '.join(header)}")
    lines: list[int] = []
    body: list[list[str]] = []
    for line, row in rows:
        if len(row) != len(header):
            raise BadRequest(f"{path}, line {line}, has {len(row)} cells, and the first line {len(header)}")
        lines.append(line)
        body.append(row)
    if not body:
        raise BadRequest(f"{path} has no rows below its first line, {separator.join(header)}")
    return Table(path, dict(zip(header, zip(*body))), tuple(lines))


def cells(lines: Iterable[str], separator: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the number of its last line; refuse what is no CSV."""
    reader = csv.reader(lines, delimiter=separator, strict=True)
    try:
        for row in reader:
            stripped = [cell.strip() for cell in row]
            if any(stripped):
                yield reader.line_num, stripped
    except csv.Error as error:
        raise BadRequest(f"{path}, line {reader.line_num}: {error}") from None


def text_of(path: Path) -> Iterator[str]:
    """Yield the lines of a file; refuse one that cannot be read, or is neither UTF-8 nor UTF-16, and endless lines."""
    number = 0
    try:
        with path.open("rb") as file:
            is_wide = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        with path.open(encoding="utf-16" if is_wide else "utf-8-sig", newline="") as text:
            while line := text.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE:
                    raise BadRequest(f"{path}, line {number}, is longer than {LONGEST_LINE:,} letters")
                yield line
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        where = "" if is_wide else f", line {line_that_is_no_text(path) or number + 1}"
        raise BadRequest(
            f"{path}{where}, is not text in UTF-8 (byte {error.object[error.start]:#04x}): save the file as UTF-8"
        ) from None


def line_that_is_no_text(path: Path) -> int:
    """Return the number of the first line that is not UTF-8; 0 where there is none, or an endless one before it."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(4 * LONGEST_LINE):
            number += 1
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 0
