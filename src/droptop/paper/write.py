"""A recipe's outputs as files, and its tables in a terminal.

Markdown is for a page such as REPRODUCTION.md, CSV for programs, LaTeX for a paper; figures are PNG and PDF.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Column as RichColumn
from rich.table import Table as RichTable

from droptop import escapes
from droptop.escapes import csv_cell, markdown_cell, visible
from droptop.paper.tables import Column, Difference, Figure, Mean, Output, Percent, Table, Value
from droptop.system.files import write_atomic
from droptop.system.terminal import folded

QUOTED = "quoted"


@dataclass(frozen=True)
class Heading:
    """Hold what stands above the tables and says where they come from."""

    title: str
    commands: Sequence[str]
    facts: Sequence[str]  # machine, date, what is missing


def write(outputs: Sequence[Output], heading: Heading, out: Path, name: str) -> list[Path]:
    """Write everything to OUT/NAME.* and return the files."""
    commands = "\n".join(f"    {visible(command)}" for command in heading.commands)
    parts, files = (
        [f"## {escapes.markdown(heading.title)}", commands, "\n".join(map(escapes.markdown, heading.facts))],
        [],
    )
    for output in outputs:
        stem = f"{name}-{output.suffix}" if output.suffix else name
        if isinstance(output, Table):
            contents = {f"{stem}.csv": csv_text(output), f"{stem}.tex": latex(output)}
            parts += [f"**{escapes.markdown(output.title)}**", markdown(output)]
        else:
            contents = dict(zip((f"{stem}.png", f"{stem}.pdf"), draw(output)))
            title = escapes.markdown(output.title)
            parts += [f"![{title}]({stem}.png)", f"*{title}*"]
        parts += map(escapes.markdown, output.notes)
        for file, content in contents.items():
            write_atomic(out / file, content)
            files.append(out / file)
    write_atomic(out / f"{name}.md", ("\n\n".join(part for part in parts if part) + "\n").encode())
    return [out / f"{name}.md", *files]


# -- One table, in three formats --------------------------------------------------------------------------------------


def headers(table: Table) -> list[str]:
    """Return the columns' names; quoted ones say so."""
    return [f"{column.name} ({QUOTED})" if column.kind == QUOTED else column.name for column in table.columns]


def markdown(table: Table) -> str:
    """Return the table as Markdown; quoted figures in italics, significant differences bold."""

    def cell(value: Value, column: Column) -> str:
        text = markdown_cell(text_of(value))
        if column.kind == QUOTED and text not in ("", "-"):
            return f"*{text}*"
        return f"**{text}**" if isinstance(value, Difference) and value.significant else text

    lines = [[*map(markdown_cell, headers(table))], ["---"] * len(table.columns)]
    lines += [[cell(value, column) for value, column in zip(row, table.columns)] for row in table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def latex(table: Table) -> bytes:
    """Return a tabular for booktabs; quoted figures in italics, significant differences bold."""

    def cell(value: Value, column: Column) -> str:
        text = escapes.latex(text_of(value))
        if column.kind == QUOTED and text:
            return rf"\textit{{{text}}}"
        return rf"\textbf{{{text}}}" if isinstance(value, Difference) and value.significant else text

    letters = "".join("l" if column.kind in ("label", "verdict") else "r" for column in table.columns)
    lines = [
        f"% {visible(table.title)}",
        rf"\begin{{tabular}}{{{letters}}}",
        r"\toprule",
        " & ".join(escapes.latex(name) for name in headers(table)) + r" \\",
        r"\midrule",
    ]
    lines += [
        " & ".join(cell(value, column) for value, column in zip(row, table.columns)) + r" \\" for row in table.rows
    ]
    lines += [r"\bottomrule", r"\end{tabular}", *(f"% {visible(note)}" for note in table.notes)]
    return ("\n".join(lines) + "\n").encode()


def csv_text(table: Table) -> bytes:
    """Return the table as CSV: numbers in full, one column per part of a cell, labels repeated in every row."""
    parts = [fields([row[place] for row in table.rows]) for place in range(len(table.columns))]
    header = [f"{name} {part}".strip() for name, names in zip(headers(table), parts) for part in names or ("",)]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(csv_cell, header))
    labels = [""] * len(table.columns)
    for row in table.rows:
        cells: list[object] = []
        for place, (value, column, names) in enumerate(zip(row, table.columns, parts)):
            if column.kind == "label" and isinstance(value, str):
                value = labels[place] = value or labels[place]
            cells += [getattr(value, part, None) for part in names] if names else [value]
        writer.writerow(map(csv_cell, cells))
    return file.getvalue().encode()


def fields(values: Sequence[Value]) -> tuple[str, ...]:
    """Return the names of the numbers that a column's cells consist of; none where they are words."""
    return next((value.fields for value in values if isinstance(value, Mean | Difference | Percent)), ())


def rich_tables(outputs: Sequence[Output]) -> list[RichTable]:
    """Return the tables among the outputs, for a terminal."""
    return [rich_table(output) for output in outputs if isinstance(output, Table)]


def rich_table(table: Table) -> RichTable:
    """Return a table for a terminal; quoted figures in italics, significant differences and verdicts bold."""
    styles = {"quoted": "italic dim", "verdict": "bold"}
    page = RichTable(
        *(RichColumn(name, style=styles.get(column.kind, "")) for name, column in zip(headers(table), table.columns)),
        title=table.title,
    )
    for row in table.rows:
        bold = (isinstance(value, Difference) and value.significant for value in row)
        page.add_row(*(folded(text_of(value), "bold" if strong else "") for value, strong in zip(row, bold)))
    return page


def text_of(value: Value) -> str:
    """Return a cell as text, empty for None."""
    return "" if value is None else str(value)


# -- Figures ----------------------------------------------------------------------------------------------------------


def draw(figure: Figure) -> tuple[bytes, bytes]:
    """Return the figure as PNG and PDF; the same figure gives the same bytes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from droptop.figures.style import STYLE, plain_text

    with plt.rc_context(STYLE):
        drawing = figure.draw()
        plain_text(drawing)
        files = []
        for kind, metadata in (("png", {}), ("pdf", {"CreationDate": None})):
            file = io.BytesIO()
            drawing.savefig(file, format=kind, dpi=150, metadata=metadata)
            files.append(file.getvalue())
        plt.close(drawing)
    return files[0], files[1]
