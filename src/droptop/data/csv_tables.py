"""Tables in text files, as spreadsheets and scripts write them: a line of column names, then a row per line.

Commas, semicolons or tabs separate the cells, whichever the first line has most of. The text is UTF-8, with or without
a byte order mark, or UTF-16 with one. Blank lines are left out, and spaces around a cell are no part of it.
"""

import codecs
import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from droptop.errors import BadRequest

SEPARATORS = ",;\t"


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
    text = read_text(path)
    separator = max(SEPARATORS, key=text.partition("\n")[0].count)
    rows = cells(text, separator, path)
    _, header = next(rows, (0, []))
    if not header:
        raise BadRequest(f"{path} is empty: its first line names columns, such as path,label")
    for name in header:
        if not name or header.count(name) > 1:
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


def cells(text: str, separator: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the number of its last line; refuse what is no CSV."""
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for row in reader:
            stripped = [cell.strip() for cell in row]
            if any(stripped):
                yield reader.line_num, stripped
    except csv.Error as error:
        raise BadRequest(f"{path}, line {reader.line_num}: {error}") from None


def read_text(path: Path) -> str:
    """Return the text of a file; refuse one that cannot be read, or is neither UTF-8 nor UTF-16."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}") from None
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadRequest(
            f"{path}, line {line}, is not text in UTF-8 (byte {data[error.start]:#04x}): save the file as UTF-8"
        ) from None
