"""Results in Python: the dicts of `summary.json` and `compare.json`, shown as tables in a console or a notebook."""

import shutil
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from droptop.escapes import html
from droptop.report import sentences, tables, tuning
from droptop.report.compare_table import compare_table
from droptop.report.diagnosis_text import diagnosis_lines
from droptop.results.diagnosis import diagnose
from droptop.system.short_names import short_name
from droptop.system.terminal import Console

NARROW = 80  # columns, where nobody knows the width of the screen


class Shown(dict[str, Any]):
    """Hold results as a dict; to look at, they are a table and what it says in sentences."""

    def table(self, width: int | None = None) -> Table:
        """Return the table, with the columns that a width has room for; by default all of them."""
        raise NotImplementedError

    def sentences(self) -> Sequence[str]:
        """Return what the table says."""
        return ()

    def __repr__(self) -> str:
        """Return the table and the sentences as plain text, as wide as the screen."""
        width = shutil.get_terminal_size((NARROW, 24)).columns
        console = Console(width=width, color_system=None)
        with console.capture() as said:
            console.print(self.table(width))
            console.print(*self.sentences(), sep="\n")
        return said.get().rstrip()

    def _repr_html_(self) -> str:
        """Return the same as HTML, which a notebook shows."""
        return html_table(self.table()) + "".join(f"<p>{html(sentence)}</p>" for sentence in self.sentences())


class RunResult(Shown):
    """Hold the results of a run: what stands in `summary.json`."""

    def table(self, width: int | None = None) -> Table:
        """Return the figures of every test set."""
        return tables.run_table(self)

    def sentences(self) -> Sequence[str]:
        """Return what the arm does."""
        return diagnosis_lines(diagnose(short_name(self["debias"]), self), self)


class Comparison(Shown):
    """Hold a comparison: what stands in `compare.json`."""

    def table(self, width: int | None = None) -> Table:
        """Return the arms beside each other."""
        return compare_table(sentences.readable(self), width)

    def sentences(self) -> Sequence[str]:
        """Return what the comparison says."""
        first, comparison = next(iter(self["arms"].values())), sentences.readable(self)
        return [
            *diagnosis_lines(self["diagnosis"], first),
            sentences.headline(comparison),
            *sentences.answer(comparison),
        ]


class Tuned(Shown):
    """Hold what tuning found: what stands in `tune.json`."""

    def table(self, width: int | None = None) -> Table:
        """Return what the best trials and the usual options reach on fresh seeds."""
        return tuning.confirmed_table(self)

    def sentences(self) -> Sequence[str]:
        """Return the choice, and how sure it is."""
        return tuning.answer(self)


def shown(result: dict[str, Any]) -> RunResult | Comparison:
    """Return the results of a run or a comparison as what shows itself."""
    return Comparison(result) if "effects" in result else RunResult(result)


def html_table(table: Table) -> str:
    """Return a table as HTML, without styles of its own."""
    heads = "".join(f"<th>{plain(column.header)}</th>" for column in table.columns)
    cells = zip(*(column.cells for column in table.columns))
    rows = "".join(f"<tr>{''.join(f'<td>{plain(cell)}</td>' for cell in row)}</tr>" for row in cells)
    title, below = (plain(text or "") for text in (table.title, table.caption))
    return (
        f"<table><caption>{title}</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        + f"<p><small>{below}</small></p>" * bool(below)
    )


def plain(cell: Any) -> str:
    """Return what a cell says as HTML."""
    return html(str(cell))
