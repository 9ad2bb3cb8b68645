"""Renders every table of REPRODUCTION.md and docs/evidence from the data in benchmarks/, in place.

    python scripts/evidence.py           writes the pages
    python scripts/evidence.py --check   writes nothing, names what differs from its data, and exits 1

A page holds markers; what stands between a marker and `<!-- end -->` is rendered.

    <!-- table: FILE by="test; figure" view=effects where="figure=A_avg|A_last" across=figure -->
    <!-- claims: docs/evidence/claims.toml -->      the paper's claims beside what was measured
    <!-- pages: first.md second.md -->              the question and the first bold words of each page beside this

FILE is a CSV, a .json of `droptop compare`, `droptop bench` or benchmarks/vit.py, or a .txt of columns. `A.csv,B.csv` are
read one after the other; `A.csv+B.csv` are pooled where both have a row (benchmarks/pooled.py). `by` names columns to
show as they are; then come those of `view`, or of columns="HEADER=CELL; HEADER=CELL". `across` names columns whose values
stand side by side. In a cell,

    {name}           is the text of that column
    {name|mean}      is "58.8 ± 0.5", of the columns "name mean" and "name error"
    {name|change}    is "+0.4 (-0.6 to +1.4)", of "name diff", "name low" and "name high"; bold where that excludes 0
    {name|effect}    is the same with its p-value
    {name|.2f}       is a number by a format of Python, also of {one / another|.2f}
    {a, b|changed}   names those of the columns whose value is not the usual one of the table

Below a table stands how its data was made, from benchmarks/index.csv.
"""

import csv
import json
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
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from pooled import Row, place, pool  # noqa: E402

MARKER = re.compile(r"(<!-- (table|claims|pages): (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
WORDS = {"No MF": "no fusion", "Rand Drop": "random dropping", "Fixed Drop": "fixed intensity", "Soft Drop Mask": "soft mask",
         "Common Drop Intensity": "one intensity for all classes"}  # what the paper calls them, in ours
VIEWS = {
    "claims": "n={n}; none, paper={none: paper (quoted)|mean}; DropTop, paper={DropTop: paper (quoted)|mean}; "
              "none, ours={none: here|mean}; DropTop, ours={DropTop: here|mean}; "
              "difference (95% interval), p={difference: here|effect}; verdict={verdict}",
    "effects": "n={n}; none={none|mean}; DropTop={droptop|mean}; difference (95% interval), p={difference|effect}",
    "readings": "none={none: here|mean}; DropTop={DropTop: here|mean}; DropTop minus none={DropTop minus none: here|change}; "
                "moves none by={moves none by|change}; moves DropTop by={moves DropTop by|change}",
    "variants": "n={n}; ours={here|mean}; to DropTop={to DropTop: here|effect}; "
                "paper's, to DropTop={to DropTop: paper (quoted)}; verdict={verdict}",
    "steps": "={ms mean|.2f}",
}


class Problem(Exception):
    """Says in one line what is wrong with a marker or its data."""


def read(source: str) -> list[Row]:
    """Reads the rows of one or more files."""
    return [row for part in source.split(",") for row in pooled([read_file(name) for name in part.split("+")])]


def pooled(tables: list[list[Row]]) -> list[Row]:
    """Adds the rows of further tables to those of the first that are about the same."""
    rows = tables[0]
    for table in tables[1:]:
        more = {place(row): row for row in table}
        rows = [pool(row, more[place(row)]) if place(row) in more else row for row in rows]
    return rows


def read_file(name: str) -> list[Row]:
    path = ROOT / name
    if not path.is_file():
        raise Problem(f"no file {name}")
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    if path.suffix == ".txt":
        lines = [re.split(r"\s{2,}", line.strip()) for line in path.read_text().splitlines()]
        return [{str(at): text for at, text in enumerate(line)} for line in lines if len(line) > 1]
    found = json.loads(path.read_text())
    return compared(found) if "arms" in found else timed(found)


def compared(found: dict[str, Any]) -> list[Row]:
    """Makes rows of what `droptop compare` wrote: each test set and figure, plain and debiased, and their difference."""
    rows = []
    for test, figures in found["effects"].items():
        for figure, effect in figures.items():
            row = {"test": test, "figure": figure, "difference diff": effect["diff"], "difference p": effect["p"],
                   "difference low": effect["ci95"][0], "difference high": effect["ci95"][1]}
            for name, arm in found["arms"].items():
                values = arm["tests"][test][figure]
                mean = math.fsum(values) / len(values)
                spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
                row |= {"n": len(values), f"{name} mean": mean, f"{name} error": spread / math.sqrt(len(values))}
            rows.append({name: str(value) for name, value in row.items()})
    return rows


def timed(found: dict[str, Any]) -> list[Row]:
    """Makes rows of timings, each with its options and with what it is held against: the plain arm, ER, the first row."""
    rows = [found.get("options", {}) | {f"share {part}": share for part, share in row.get("shares", {}).items()} | row
            for row in found["rows"]]
    alone = {(row.get("method"), row.get("engine"), row["seeds"]): row["ms"] for row in rows if row.get("debias") == "none"}
    return [{name: str(value) for name, value in row.items()}
            | {"ms mean": str(row["ms"]), "ms error": str(row.get("ms_error", "")), "first ms": str(rows[0]["ms"]),
               "none ms": str(alone.get((row.get("method"), row.get("engine"), row["seeds"]), "")),
               "er ms": str(alone.get(("er", "eager", row["seeds"]), ""))} for row in rows]


def select(rows: list[Row], where: str) -> list[Row]:
    """Keeps the rows that `COLUMN=VALUE|VALUE; COLUMN=VALUE` names."""
    for condition in filter(None, where.split("; ")):
        name, _, values = condition.partition("=")
        rows = [row for row in rows if text(row, name, rows) in values.split("|")]
        if not rows:
            raise Problem(f"no row has {condition}")
    return rows


def text(row: Row, name: str, rows: list[Row]) -> str:
    """Gives a column's text, empty where only other rows have the column."""
    if not any(name in other for other in rows):
        raise Problem(f"no column {name!r}; there are {', '.join(rows[0])}")
    return row.get(name) or ""


def number(row: Row, name: str, rows: list[Row]) -> float | None:
    value = text(row, name, rows).removeprefix("<")
    return float(value) if value else None


def cell(template: str, row: Row, rows: list[Row]) -> str:
    """Fills in a cell's template."""
    filled = re.sub(r"\{([^{}|]*)\|?([^{}]*)\}", lambda found: form(found[1], found[2], row, rows), template)
    return filled.strip("; ")


def form(name: str, how: str, row: Row, rows: list[Row]) -> str:
    """Writes one or more columns of a row as the docstring above says."""
    if not how:
        return WORDS.get(text(row, name, rows), text(row, name, rows))
    if how == "changed":
        usual = {one: Counter(filter(None, (other[one] for other in rows))).most_common(1)[0][0] for one in name.split(", ")}
        return ", ".join(f"{one} = {row[one]}" for one in usual if row[one] not in ("", usual[one])) or "as it is"
    if how == "mean":
        if not any(f"{name} mean".strip() in other for other in rows):  # recipes write one column where nothing is quoted
            return text(row, name, rows)
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
    values = [float(part) if re.fullmatch(r"\d+e\d+", part) else number(row, part, rows) for part in name.split(" / ")]
    if None in values:
        return ""
    return format(values[0] if len(values) == 1 else values[0] / values[1], how)  # type: ignore[operator]


def grid(rows: list[Row], by: list[str], columns: list[tuple[str, str]], across: str) -> list[list[str]]:
    """Lays cells out, headers first; with `across`, rows that agree in the columns of `by` become one."""
    shown = [([cell(name if "{" in name else f"{{{name}}}", row, rows) for name in by],
              ", ".join(filter(None, (form(name, "", row, rows) for name in across.split("; ")))) if across else "",
              [cell(template, row, rows) for _, template in columns]) for row in rows]
    sides = list(dict.fromkeys(side for _, side, _ in shown))
    heads = ["option" if "{" in name else name for name in by]
    heads += [", ".join(filter(None, (header, side))) for side in sides for header, _ in columns]
    body: dict[str, list[str]] = {}
    for at, (lead, side, cells) in enumerate(shown):
        line = body.setdefault(str(lead) if across else str(at), lead + [""] * len(sides) * len(columns))
        start = len(by) + sides.index(side) * len(columns)
        line[start:start + len(columns)] = cells
    lines = [heads, *body.values()]
    kept = [at for at in range(len(heads)) if any(line[at] for line in lines[1:])]  # no empty columns
    return [[line[at] for at in kept] for line in lines]


def markdown(lines: list[list[str]]) -> str:
    rows = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([rows[0], "|" + "---|" * len(lines[0]), *rows[1:]])


def table(source: str, options: dict[str, str], page: Path, told: set[str]) -> str:
    """Renders a table and, once a page, how each of its files was made."""
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
    """Says how a file was made: command, machine, commit, date and seeds."""
    rows = [row for row in read_file("benchmarks/index.csv") if row["file"] == name]
    if not rows:
        raise Problem(f"benchmarks/index.csv does not say how {name} was made")
    link = f"[{Path(name).name}]({os.path.relpath(ROOT / name, page.parent)})"
    lines = []
    for row in rows:
        command = f"`{row['command']}`" if row["command"].startswith(("droptop ", "python ")) else row["command"]
        lines.append(f"- {', '.join(filter(None, (link, row['rows'])))}: {command}; {row['machine']}, {row['device']}; "
                     f"commit {row['commit']}; {row['date']}; seeds {row['seeds']}")
    return "\n".join(lines)


def claims(name: str) -> str:
    """Renders the paper's claims: what is measured is filled in from the rows that the file names."""
    lines = [["claim", "the paper (quoted)", "ours (95% interval), seeds", "verdict", "evidence"]]
    for claim in tomllib.loads((ROOT / name).read_text())["claim"]:
        found = []
        for part in claim["ours"]:
            rows = select(read(part["file"]), part["where"])
            if len(rows) != 1:
                raise Problem(f"{len(rows)} rows of {part['file']} have {part['where']}, not one")
            found.append(cell(part["cell"], rows[0], rows))
        page = ROOT / "docs/evidence" / claim["page"]
        if not page.is_file():
            raise Problem(f"no page {claim['page']}")
        lines.append([claim["claim"], claim["paper"], "; ".join(found + ([claim["note"]] if "note" in claim else [])),
                      claim["verdict"], f"[{page.stem}](docs/evidence/{page.name})"])
    return markdown(lines)


def pages(names: list[str], folder: Path) -> str:
    """Renders a line for each page: its question and its answer."""
    if missing := {page.name for page in folder.glob("*.md")} - {"index.md", *names}:
        raise Problem(f"{', '.join(sorted(missing))} not named")
    lines = [["question", "answer"]]
    for name in names:
        found = re.match(r"# (.+)\n\n\*\*(.+?)\*\*", (folder / name).read_text(), re.DOTALL)
        if not found:
            raise Problem(f"{name} does not begin with a question and an answer in bold")
        lines.append([f"[{found[1]}]({name})", " ".join(found[2].split())])
    return markdown(lines)


def render(page: Path) -> Iterator[tuple[str, str, str]]:
    """Gives each rendered part of a page: what it is, as it stands there, as its data has it."""
    told: set[str] = set()
    for found in MARKER.finditer(page.read_text()):
        _, kind, rest, old, _ = found.groups()
        source, _, options = rest.partition(" ")
        try:
            new = (claims(source) if kind == "claims" else pages(rest.split(), page.parent) if kind == "pages" else
                   table(source, dict(part.split("=", 1) for part in shlex.split(options)), page, told))
        except Problem as problem:
            raise Problem(f"{page.relative_to(ROOT)}: {kind} of {source}: {problem}") from None
        yield f"{kind} of {source}", old, f"\n{new}\n\n"


def problems(page: Path) -> list[str]:
    """Names each part of a page that its data does not give."""
    parts = list(render(page))
    found = [f"{what} differs from its data; `make evidence` renders it" for what, old, new in parts if old != new]
    rest = MARKER.sub("", page.read_text())
    found += ["a table has no marker" for loose, _ in groupby(rest.splitlines(), lambda line: line.startswith("|")) if loose]
    answer = re.split(r"^##|<!--", page.read_text(), flags=re.MULTILINE)[0]
    rendered = " ".join(new for _, _, new in parts)
    found += [f"{figure} in the answer is in no table of the page" for figure in re.findall(r"[+-]\d+\.\d\b", answer)
              if figure not in rendered]
    return [f"{page.relative_to(ROOT)}: {problem}" for problem in found]


def main(arguments: list[str]) -> int:
    """Renders every page, or checks it; gives the exit status."""
    every = [*sorted((ROOT / "docs/evidence").glob("*.md")), ROOT / "REPRODUCTION.md"]
    try:
        if arguments == ["--check"]:
            found = [problem for page in every for problem in problems(page)]
            print("\n".join(found) or f"{len(every)} pages are as their data has them")
            return bool(found)
        for page in every:
            parts = iter([new for _, _, new in render(page)])
            page.write_text(MARKER.sub(lambda found: found[1] + next(parts) + found[5], page.read_text()))
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
