"""Read rows of text for scripts/evidence.py from the files of benchmarks/, of whatever kind."""

import csv
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from pooled import Row as Row  # noqa: E402
from pooled import place, pool  # noqa: E402


class Problem(Exception):
    """Say in one line what is wrong with a marker or its data."""


def read(source: str) -> list[Row]:
    """Return the rows of one or more files: `A,B` one after the other, `A+B` pooled."""
    return [row for part in source.split(",") for row in pooled([read_file(name) for name in part.split("+")])]


def pooled(tables: list[list[Row]]) -> list[Row]:
    """Return the rows of the first table, each pooled with those of the others that are about the same."""
    rows = tables[0]
    for table in tables[1:]:
        more = {place(row): row for row in table}
        rows = [pool(row, more[place(row)]) if place(row) in more else row for row in rows]
    return rows


def read_file(name: str) -> list[Row]:
    """Return the rows of a file, by its kind; raise Problem if it is missing."""
    path = ROOT / name
    if not path.is_file():
        raise Problem(f"no file {name}")
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    if path.suffix == ".txt":
        lines = [re.split(r"\s{2,}", line.strip()) for line in path.read_text().splitlines()]
        return [{str(at): text for at, text in enumerate(line)} for line in lines if len(line) > 1]
    content = json.loads(path.read_text())
    if "starts" in content:  # of benchmarks/start.py
        return [{name: "" if value is None else str(value) for name, value in row.items()} for row in content["starts"]]
    return compared(content) if "arms" in content else timed(content)


def compared(comparison: dict[str, Any]) -> list[Row]:
    """Return rows of what `droptop compare` wrote: per arm, test set and figure, all arms and the arm's difference."""
    effects = comparison["effects"]
    if not effects.keys() <= comparison["arms"].keys():  # before 0.3 there were two arms, and effects by test set
        effects = {list(comparison["arms"])[1]: effects}
    rows = []
    for changed, tests in effects.items():
        for test, figure in ((test, figure) for test, figures in tests.items() for figure in figures):
            effect = tests[test][figure]
            row = {
                "arm": changed,
                "test": test,
                "figure": figure,
                "difference diff": effect["diff"],
                "difference p": effect["p"],
                "difference low": effect["ci95"][0],
                "difference high": effect["ci95"][1],
            }
            for name, arm in comparison["arms"].items():
                values = arm["tests"][test][figure]
                mean = math.fsum(values) / len(values)
                spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
                row |= {"n": len(values), f"{name} mean": mean, f"{name} error": spread / math.sqrt(len(values))}
            rows.append({name: str(value) for name, value in row.items()})
    return rows


def timed(timings: dict[str, Any]) -> list[Row]:
    """Return rows of timings, each with its options and what it is compared with: the plain arm, ER, the first row."""
    plain = {
        (row.get("method"), row.get("engine"), row["seeds"]): row["ms"]
        for row in timings["rows"]
        if row.get("debias") == "none"
    }
    rows = []
    for row in timings["rows"]:
        shares = {f"share {part}": share for part, share in row.get("shares", {}).items()}
        beside = {
            "ms mean": row["ms"],
            "ms error": row.get("ms_error", ""),
            "first ms": timings["rows"][0]["ms"],
            "none ms": plain.get((row.get("method"), row.get("engine"), row["seeds"]), ""),
            "er ms": plain.get(("er", "eager", row["seeds"]), ""),
        }
        rows.append({name: str(value) for name, value in (timings.get("options", {}) | row | shares | beside).items()})
    return rows
