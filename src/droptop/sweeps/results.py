"""The results of a study: means, grouped by any options, and differences, paired by seed and corrected."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from droptop.errors import BadRequest
from droptop.escapes import csv_cell
from droptop.results.metrics import GAP, WORST
from droptop.results.statistics import estimate, holm, paired_effect
from droptop.sweeps.pairing import Plain, Reference, Value, option, options_of, sort_key
from droptop.system.short_names import short_names

BY = ("data", "method", "debias")  # what results are grouped by unless told otherwise
FIGURES = ("A_avg", "A_last", "F_last")


def usual_figures(values: Iterable[Value]) -> list[str]:
    """Return the figures that are shown unless others are named; of groups, the worst one's accuracy and the gap."""
    return [*FIGURES, *sorted({value["figure"] for value in values if value["figure"].startswith((WORST, GAP))})]


def grouped_rows(
    values: Sequence[Value],
    by: Sequence[str],
    figures: Sequence[str] = FIGURES,
    tests: Sequence[str] = (),
    reference: Reference | None = None,
) -> list[dict[str, Any]]:
    """Return a row per group, test set and figure.

    A group also has its difference to the reference, by default the same runs without debiasing (same options, same
    seed); p_holm is corrected for all comparisons of that figure (Holm, 1979), as in `compare`.

    Cells of one seed are not independent: where a group holds several, which differ in options that it is not grouped
    by, their mean stands for that seed, and n counts seeds.
    """
    known, beside = options_of(values), (reference or Plain(values)).beside
    paths = [option(name, known) for name in by]
    groups: dict[tuple[Any, ...], list[Value]] = {}
    for value in values:
        if value["figure"] in figures and (not tests or value["test"] in tests) and value["value"] is not None:
            key = (*(value.get(path) for path in paths), value["test"], value["figure"])
            groups.setdefault(key, []).append(value)
    rows = []
    for key in sorted(groups, key=lambda key: tuple(map(sort_key, key))):
        members = groups[key]
        numbers = by_seed((value["seed"], value["value"]) for value in members)
        row: dict[str, Any] = dict(zip([*by, "test", "figure"], key))
        row |= {"n": len(numbers), "mean": float(numbers.mean()), "error": estimate(numbers).error}
        differences = by_seed(
            (value["seed"], value["value"] - other) for value in members if (other := beside(value)) is not None
        )
        effect = paired_effect([0.0] * len(differences), differences.tolist())
        low, high = effect["ci95"] or (None, None)
        row |= {
            "cells": len(members),
            "pairs": len(differences),
            "diff": effect["diff"],
            "low": low,
            "high": high,
            "p": effect["p"],
        }
        rows.append(row)
    for figure in figures:
        family = [row for row in rows if row["figure"] == figure]
        for row, corrected in zip(family, holm([row["p"] for row in family])):
            row["p_holm"] = corrected
    return rows


def with_short_names(rows: Sequence[dict[str, Any]], by: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows with the paths in the columns they are grouped by shortened, as far as these still differ."""
    short = {name: short_names(row[name] for row in rows if isinstance(row[name], str)) for name in by}
    return [row | {name: short[name].get(row[name], row[name]) for name in by} for row in rows]


def by_seed(values: Iterable[tuple[int, float]]) -> np.ndarray:
    """Return the mean of each seed's values."""
    seeds: dict[int, list[float]] = {}
    for seed, value in values:
        seeds.setdefault(seed, []).append(value)
    return np.array([np.mean(of_seed) for of_seed in seeds.values()], dtype=float)


def also_varied(values: Sequence[Value], by: Sequence[str]) -> list[str]:
    """Return the names of options that differ within a group of runs, and are therefore averaged over."""
    known = options_of(values)
    paths = [option(name, known) for name in by]
    groups: dict[tuple[Any, ...], dict[str, set[str]]] = {}
    for value in values:
        seen = groups.setdefault(tuple(value.get(path) for path in paths), {})
        for path in (known - {"seed"}) & value.keys():
            seen.setdefault(path, set()).add(str(value[path]))
    varied = {path for seen in groups.values() for path, different in seen.items() if len(different) > 1}
    return sorted(path.rpartition(".")[2] for path in varied)


def export(rows: list[dict[str, Any]], path: Path) -> None:
    """Write rows to a file, as CSV or Parquet by its ending; refuse another ending, or Parquet without pyarrow."""
    if path.suffix == ".parquet":
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise BadRequest("--export to Parquet needs pyarrow: pip install pyarrow, or name a .csv") from None
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(map(csv_cell, rows[0] if rows else ["test"]))
            writer.writerows(map(csv_cell, row.values()) for row in rows)
    else:
        raise BadRequest(f"--export takes a .csv or .parquet file, not {path}")
