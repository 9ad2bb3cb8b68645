"""A recipe's outputs as files: Markdown for a page such as REPRODUCTION.md, CSV for programs, LaTeX for a paper, PNG
and PDF for figures; and as tables in a terminal.
"""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Column as RichColumn
from rich.table import Table as RichTable
from rich.text import Text

from droptop.paper.tables import Column, Difference, Figure, Mean, Output, Percent, Table, Value
from droptop.system.files import write_atomic

QUOTED = "quoted"
LATEX = {
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    "<": "$<$",
    ">": "$>$",
}


@dataclass(frozen=True)
class Heading:
    """What stands above the tables: where they come from."""

    title: str
    commands: Sequence[str]
    facts: Sequence[str]  # machine, date, what is missing


def write(outputs: Sequence[Output], heading: Heading, out: Path, name: str) -> list[Path]:
    """Writes everything to OUT/NAME.*; gives the files."""
    parts, files = (
        [f"## {heading.title}", "\n".join(f"    {command}" for command in heading.commands), "\n".join(heading.facts)],
        [],
    )
    for output in outputs:
        stem = f"{name}-{output.suffix}" if output.suffix else name
        if isinstance(output, Table):
            contents = {f"{stem}.csv": csv_text(output), f"{stem}.tex": latex(output)}
            parts += [f"**{output.title}**", markdown(output)]
        else:
            contents = dict(zip((f"{stem}.png", f"{stem}.pdf"), draw(output)))
            parts += [f"![{output.title}]({stem}.png)", f"*{output.title}*"]
        parts += output.notes
        for file, content in contents.items():
            write_atomic(out / file, content)
            files.append(out / file)
    write_atomic(out / f"{name}.md", ("\n\n".join(part for part in parts if part) + "\n").encode())
    return [out / f"{name}.md", *files]


# -- One table, in three languages ------------------------------------------------------------------------------------


def heads(table: Table) -> list[str]:
    return [f"{column.name} ({QUOTED})" if column.kind == QUOTED else column.name for column in table.columns]


def markdown(table: Table) -> str:
    def cell(value: Value, column: Column) -> str:
        text = plain(value).replace("|", r"\|")
        if column.kind == QUOTED and text not in ("", "-"):
            return f"*{text}*"
        return f"**{text}**" if isinstance(value, Difference) and value.significant else text

    lines = [heads(table), ["---"] * len(table.columns)]
    lines += [[cell(value, column) for value, column in zip(row, table.columns)] for row in table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def latex(table: Table) -> bytes:
    """A tabular for booktabs; quoted figures in italics, significant differences bold."""

    def cell(value: Value, column: Column) -> str:
        text = escaped(plain(value))
        if column.kind == QUOTED and text:
            return rf"\textit{{{text}}}"
        return rf"\textbf{{{text}}}" if isinstance(value, Difference) and value.significant else text

    letters = "".join("l" if column.kind in ("label", "verdict") else "r" for column in table.columns)
    lines = [
        f"% {table.title}",
        rf"\begin{{tabular}}{{{letters}}}",
        r"\toprule",
        " & ".join(escaped(head) for head in heads(table)) + r" \\",
        r"\midrule",
    ]
    lines += [
        " & ".join(cell(value, column) for value, column in zip(row, table.columns)) + r" \\" for row in table.rows
    ]
    lines += [r"\bottomrule", r"\end{tabular}", *(f"% {note}" for note in table.notes)]
    return ("\n".join(lines) + "\n").encode()


def csv_text(table: Table) -> bytes:
    """Numbers in full, a column for each part of a cell; labels are repeated, so that every row stands for itself."""
    parts = [fields([row[place] for row in table.rows]) for place in range(len(table.columns))]
    header = [f"{head} {part}".strip() for head, own in zip(heads(table), parts) for part in own or ("",)]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    labels = [""] * len(table.columns)
    for row in table.rows:
        cells: list[object] = []
        for place, (value, column, own) in enumerate(zip(row, table.columns, parts)):
            if column.kind == "label" and isinstance(value, str):
                value = labels[place] = value or labels[place]
            cells += [getattr(value, part, None) for part in own] if own else [value]
        writer.writerow(cells)
    return file.getvalue().encode()


def fields(values: Sequence[Value]) -> tuple[str, ...]:
    """The numbers that a column's cells are made of; none where they are words."""
    return next((value.fields for value in values if isinstance(value, Mean | Difference | Percent)), ())


def tables(outputs: Sequence[Output]) -> list[RichTable]:
    """The tables among them, for a terminal."""
    return [shown(output) for output in outputs if isinstance(output, Table)]


def shown(table: Table) -> RichTable:
    styles = {"quoted": "italic dim", "verdict": "bold"}
    page = RichTable(
        *(RichColumn(head, style=styles.get(column.kind, "")) for head, column in zip(heads(table), table.columns)),
        title=table.title,
    )
    for row in table.rows:
        page.add_row(
            *(
                Text(plain(value), style="bold" if isinstance(value, Difference) and value.significant else "")
                for value in row
            )
        )
    return page


def plain(value: Value) -> str:
    return "" if value is None else str(value)


def escaped(text: str) -> str:
    return re.sub("|".join(map(re.escape, LATEX)), lambda results: LATEX[results[0]], text)


# -- Figures ----------------------------------------------------------------------------------------------------------


def draw(figure: Figure) -> tuple[bytes, bytes]:
    """PNG and PDF; the same figure gives the same bytes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from droptop.figures.style import STYLE

    with plt.rc_context(STYLE):
        drawing = figure.draw()
        files = []
        for kind, metadata in (("png", {}), ("pdf", {"CreationDate": None})):
            file = io.BytesIO()
            drawing.savefig(file, format=kind, dpi=150, metadata=metadata)
            files.append(file.getvalue())
        plt.close(drawing)
    return files[0], files[1]
