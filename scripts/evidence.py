"""Render every table of REPRODUCTION.md and docs/evidence from the data in benchmarks/, in place.

    python scripts/evidence.py           writes the pages
    python scripts/evidence.py --check   writes nothing, names what differs from its data, and exits 1

A page holds markers; what stands between a marker and `<!-- end -->` is rendered.

    <!-- table: FILE by="test; figure" view=effects where="figure=A_avg|A_last" across=figure -->
    <!-- claims: docs/evidence/claims.toml -->      the paper's claims beside what was measured
    <!-- pages: first.md second.md -->              the question and the first bold words of each page beside this

FILE is a .csv, a .json of `droptop compare`, `droptop bench`, benchmarks/vit.py or benchmarks/start.py, or a .txt of
columns. `A.csv,B.csv` are read one after the other; `A.csv+B.csv` are pooled where both have a row
(benchmarks/pooled.py). `by` names columns to show as they are; then come those of `view`, or of
columns="HEADER=CELL; HEADER=CELL". `across` names columns whose values stand side by side; columns without any text are
left out. In a cell,

    {name}           is the text of that column
    {name|mean}      is "58.8 ± 0.5", of the columns "name mean" and "name error"
    {name|change}    is "+0.4 (-0.6 to +1.4)", of "name diff", "name low" and "name high"; bold where that excludes 0
    {name|effect}    is the same with its p-value
    {name|.2f}       is a number by a format of Python, also of {one / another|.2f}
    {a, b|changed}   names those of the columns whose value is not the usual one of the table

Below a table stands how its data was made, from benchmarks/index.csv.
"""

import math
import os
import re
import shlex
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from evidence_data import ROOT, Problem, Row, read, read_file

MARKER = re.compile(r"(<!-- (table|claims|pages): (.+?) -->\n)((?:(?!<!--).)*)(<!-- end -->)", re.DOTALL)
WORDS = {
    "No MF": "no fusion",
    "Rand Drop": "random dropping",
    "Fixed Drop": "fixed intensity",  # the paper's, and ours
    "Soft Drop Mask": "soft mask",
    "Common Drop Intensity": "one intensity for all classes",
}
VIEWS = {
    "claims": "n={n}; none, paper={none: paper (quoted)|mean}; DropTop, paper={DropTop: paper (quoted)|mean}; "
    "none, ours={none: here|mean}; DropTop, ours={DropTop: here|mean}; "
    "difference (95% interval), p={difference: here|effect}; verdict={verdict}",
    "effects": "n={n}; none={none|mean}; DropTop={droptop|mean}; difference (95% interval), p={difference|effect}",
    "readings": "none={none: here|mean}; DropTop={DropTop: here|mean}; "
    "DropTop minus none={DropTop minus none: here|change}; moves none by={moves none by|change}; "
    "moves DropTop by={moves DropTop by|change}",
    "variants": "n={n}; ours={here|mean}; to DropTop={to DropTop: here|effect}; "
    "paper's, to DropTop={to DropTop: paper (quoted)}; verdict={verdict}",
    "steps": "={ms mean|.2f}",
}


def select(rows: list[Row], where: str) -> list[Row]:
    """Return the rows that `COLUMN=VALUE|VALUE; COLUMN=VALUE` names."""
    for condition in filter(None, where.split("; ")):
        name, _, values = condition.partition("=")
        rows = [row for row in rows if text(row, name, rows) in values.split("|")]
        if not rows:
            raise Problem(f"no row has {condition}")
    return rows


def text(row: Row, name: str, rows: list[Row]) -> str:
    """Return the text of a column in a row; "" where only other rows have the column, Problem where none has."""
    if not any(name in other for other in rows):
        raise Problem(f"no column {name!r}; there are {', '.join(rows[0])}")
    return row.get(name) or ""


def number(row: Row, name: str, rows: list[Row]) -> float | None:
    """Return the number of a column in a row; None where it is empty."""
    value = text(row, name, rows).removeprefix("<")
    return float(value) if value else None


def cell(template: str, row: Row, rows: list[Row]) -> str:
    """Return a cell: its template, filled in from a row."""
    filled = re.sub(r"\{([^{}|]*)\|?([^{}]*)\}", lambda part: form(part[1], part[2], row, rows), template)
    return filled.strip("; ")


def form(name: str, how: str, row: Row, rows: list[Row]) -> str:
    """Return one or more columns of a row as text, in a form that the docstring above names."""
    if not how:
        return WORDS.get(text(row, name, rows), text(row, name, rows))
    if how == "changed":
        counts = {column: Counter(text(other, column, rows) for other in rows) for column in name.split(", ")}
        usual = {column: of_column.most_common(1)[0][0] for column, of_column in counts.items()}
        changed = [f"{column} = {row[column]}" for column in usual if row[column] and row[column] != usual[column]]
        return ", ".join(changed) or "as it is"
    if how == "mean":
        if not any(f"{name} mean".strip() in other for other in rows):
            return text(row, name, rows)  # recipes write one empty column where nothing is quoted
        mean, error = (number(row, f"{name} {part}".strip(), rows) for part in ("mean", "error"))
        return "" if mean is None else f"{mean:.1f}" + ("" if error is None else f" ± {error:.1f}")
    if how in ("change", "effect"):
        diff, low, high = (number(row, f"{name} {part}".strip(), rows) for part in ("diff", "low", "high"))
        if diff is None or low is None or high is None:
            return "" if diff is None else f"{diff:+.1f}"
        p = text(row, f"{name} p".strip(), rows) if how == "effect" else ""
        small = p.startswith("<") or (p and float(p) < 0.001)
        p = ", p < 0.001" if small else f", p = {float(p):.3f}" if p else ""
        bold = "**" if math.copysign(1, low) == math.copysign(1, high) else ""  # "-0.0" excludes 0 from below
        return f"{bold}{diff:+.1f} ({low:+.1f} to {high:+.1f}){p}{bold}"
    terms = [float(part) if re.fullmatch(r"\d+e\d+", part) else number(row, part, rows) for part in name.split(" / ")]
    if None in terms:
        return ""
    return format(terms[0] if len(terms) == 1 else terms[0] / terms[1], how)  # type: ignore[operator]


def grid(rows: list[Row], by: list[str], columns: list[tuple[str, str]], across: str) -> list[list[str]]:
    """Return lines of cells, headers first; with `across`, rows that agree in the columns of `by` become one line."""
    shown = [
        (
            [cell(name if "{" in name else f"{{{name}}}", row, rows) for name in by],
            ", ".join(filter(None, (form(name, "", row, rows) for name in across.split("; ")))) if across else "",
            [cell(template, row, rows) for _, template in columns],
        )
        for row in rows
    ]
    sides = list(dict.fromkeys(side for _, side, _ in shown))
    heads = ["option" if "{" in name else name for name in by]
    heads += [", ".join(filter(None, (header, side))) for side in sides for header, _ in columns]
    body: dict[str, list[str]] = {}
    for at, (lead, side, cells) in enumerate(shown):
        line = body.setdefault(str(lead) if across else str(at), lead + [""] * len(sides) * len(columns))
        start = len(by) + sides.index(side) * len(columns)
        if any(line[start : start + len(columns)]):
            raise Problem(f"two rows have {', '.join([*lead, side])}")
        line[start : start + len(columns)] = cells
    lines = [heads, *body.values()]
    kept = [at for at in range(len(heads)) if any(line[at] for line in lines[1:])]  # no empty columns
    return [[line[at] for at in kept] for line in lines]


def markdown(lines: list[list[str]]) -> str:
    """Return lines of cells as a Markdown table."""
    rows = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([rows[0], "|" + "---|" * len(lines[0]), *rows[1:]])


def table(source: str, options: dict[str, str], page: Path, told: set[str]) -> str:
    """Return a table and, once per page, how each of its files was made; `told` are files that the page has told of."""
    if unknown := set(options) - {"by", "view", "columns", "where", "across"}:
        raise Problem(f"no option {', '.join(sorted(unknown))}")
    if options.get("view", "claims") not in VIEWS:
        raise Problem(f"no view {options['view']}; there are {', '.join(VIEWS)}")
    rows = select(read(source), options.get("where", ""))
    columns = options.get("columns") or (VIEWS[options["view"]] if "view" in options else "")
    pairs = [tuple(column.split("=", 1)) for column in columns.split("; ")] if columns else []
    by = options["by"].split("; ") if "by" in options else []
    lines = markdown(grid(rows, by, pairs, options.get("across", "")))  # type: ignore[arg-type]
    files = [name for name in re.split(r"[,+]", source) if name not in told]
    told.update(files)
    return "\n\n".join([lines, *(made(name, page) for name in files)])


def made(name: str, page: Path) -> str:
    """Return how a file was made: command, machine, commit, date and seeds."""
    rows = [row for row in read_file("benchmarks/index.csv") if row["file"] == name]
    if not rows:
        raise Problem(f"benchmarks/index.csv does not say how {name} was made")
    link = f"[{Path(name).name}]({os.path.relpath(ROOT / name, page.parent)})"
    lines = []
    for row in rows:
        command = f"`{row['command']}`" if row["command"].startswith(("droptop ", "python ")) else row["command"]
        lines.append(
            f"- {', '.join(filter(None, (link, row['rows'])))}: {command}; {row['machine']}, {row['device']}; "
            f"commit {row['commit']}; {row['date']}; seeds {row['seeds']}"
        )
    return "\n".join(lines)


def claims(name: str) -> str:
    """Return a table of the paper's claims; what was measured comes from the rows that the file names."""
    lines = [["claim", "the paper (quoted)", "ours (95% interval), seeds", "verdict", "evidence"]]
    for claim in tomllib.loads((ROOT / name).read_text())["claim"]:
        measured = []
        for part in claim["ours"]:
            rows = select(read(part["file"]), part["where"])
            if len(rows) != 1:
                raise Problem(f"{len(rows)} rows of {part['file']} have {part['where']}, not one")
            measured.append(cell(part["cell"], rows[0], rows))
        page = ROOT / "docs/evidence" / claim["page"]
        if not page.is_file():
            raise Problem(f"no page {claim['page']}")
        lines.append(
            [
                claim["claim"],
                claim["paper"],
                "; ".join(measured + ([claim["note"]] if "note" in claim else [])),
                claim["verdict"],
                f"[{page.stem}](docs/evidence/{page.name})",
            ]
        )
    return markdown(lines)


def pages(names: list[str], folder: Path) -> str:
    """Return a table with a line per page: its question and its answer."""
    if missing := {page.name for page in folder.glob("*.md")} - {"index.md", *names}:
        raise Problem(f"{', '.join(sorted(missing))} not named")
    lines = [["question", "answer"]]
    for name in names:
        match = re.match(r"# ([^\n]+)\n\n\*\*(.+?)\*\*", (folder / name).read_text(), re.DOTALL)
        if not match:
            raise Problem(f"{name} does not begin with a question and an answer in bold")
        lines.append([f"[{match[1]}]({name})", " ".join(match[2].split())])
    return markdown(lines)


def render(page: Path) -> Iterator[tuple[str, str, str]]:
    """Yield each rendered part of a page: its name, its text in the page, and its text by the data."""
    told: set[str] = set()
    for at, marker in enumerate(MARKER.finditer(page.read_text()), 1):
        _, kind, rest, old, _ = marker.groups()
        source, _, options = rest.partition(" ")
        try:
            new = (
                claims(source)
                if kind == "claims"
                else pages(rest.split(), page.parent)
                if kind == "pages"
                else table(source, dict(part.split("=", 1) for part in shlex.split(options)), page, told)
            )
        except Problem as problem:
            raise Problem(f"{page.relative_to(ROOT)}: {kind} {at} ({source}): {problem}") from None
        yield f"{kind} {at} ({source})", old, f"\n{new}\n\n"


def anew(page: Path) -> str:
    """Return a page's text with every part by the data."""
    parts = iter([new for _, _, new in render(page)])
    return MARKER.sub(lambda marker: marker[1] + next(parts) + marker[5], page.read_text())


def problems(page: Path) -> list[str]:
    """Return what is wrong with a page: parts that differ from the data, markers and tables that do not pair up."""
    parts = list(render(page))
    wrong = [f"{what} differs from its data; `make evidence` renders it" for what, old, new in parts if old != new]
    rest = MARKER.sub("", page.read_text()).splitlines()
    wrong += [f"no `<!-- end -->` after {line}" for line in rest if re.match("<!-- (table|claims|pages):", line)]
    wrong += ["a table has no marker" for loose, _ in groupby(rest, lambda line: line.startswith("|")) if loose]
    answer = re.split(r"^##|<!--", page.read_text(), flags=re.MULTILINE)[0]
    rendered = " ".join(new for _, _, new in parts)
    wrong += [
        f"{figure} in the answer is in no table of the page"
        for figure in re.findall(r"[+-]\d+\.\d\b", answer)
        if figure not in rendered
    ]
    return [f"{page.relative_to(ROOT)}: {problem}" for problem in wrong]


def main(arguments: list[str]) -> int:
    """Render every page, or check it; return the exit status."""
    every = [*sorted((ROOT / "docs/evidence").glob("*.md")), ROOT / "REPRODUCTION.md"]
    try:
        if arguments == ["--check"]:
            wrong = [problem for page in every for problem in problems(page)]
            print("\n".join(wrong) or f"{len(every)} pages are as their data has them")
            return bool(wrong)
        for page in every:
            page.write_text(anew(page))
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
