"""The results of a study: means, grouped by any options, and what debiasing changes, paired by seed and corrected."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from droptop.errors import BadRequest
from droptop.options import WITHOUT_EFFECT, ending_in
from droptop.results.statistics import estimate, holm, paired_effect

FIGURES = ("A_avg", "A_last", "F_last")
Value = dict[str, Any]  # one figure of a cell, with the cell's options


def option(name: str, known: Iterable[str]) -> str:
    """Return the path of the option that `name` is an end of; refuse a name of none or of several."""
    paths = ending_in(name, known)
    if len(paths) != 1:
        raise BadRequest(f"--by takes options of the study's runs, such as data, debias, lr or seed, not {name}")
    return paths[0]


def options_of(values: Sequence[Value], by: Sequence[str]) -> tuple[set[str], list[str]]:
    """Return the paths of all options that tell cells apart, with the seed, and the paths that `by` names."""
    known = {path for value in values for path in value} - {"run", "test", "figure", "value", *WITHOUT_EFFECT}
    return known, [option(name, known) for name in by]


def grouped_rows(
    values: Sequence[Value], by: Sequence[str], figures: Sequence[str] = FIGURES, tests: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return a row per group, test set and figure.

    A debiased group also has its difference to the same runs without debiasing (same options, same seed); p_holm is
    corrected for all comparisons of that figure (Holm, 1979), as in `compare`.

    Cells of one seed are not independent: where a group holds several, which differ in options that it is not grouped
    by, their mean stands for that seed, and n counts seeds.
    """
    _, paths = options_of(values, by)
    plain = {twin(value): value["value"] for value in values if value.get("debias") == "none"}
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
            (value["seed"], value["value"] - plain[twin(value)])
            for value in members
            if value.get("debias") != "none" and plain.get(twin(value)) is not None
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


def by_seed(values: Iterable[tuple[int, float]]) -> np.ndarray:
    """Return the mean of each seed's values."""
    seeds: dict[int, list[float]] = {}
    for seed, value in values:
        seeds.setdefault(seed, []).append(value)
    return np.array([np.mean(of_seed) for of_seed in seeds.values()], dtype=float)


def sort_key(value: Any) -> tuple[int, float, str]:
    """Return what sorts values in a table: None and "none" first, then numbers by size, then words."""
    if value in (None, "none"):
        return (0, 0.0, "")
    return (1, float(value), "") if isinstance(value, int | float) else (2, 0.0, str(value))


def also_varied(values: Sequence[Value], by: Sequence[str]) -> list[str]:
    """Return the names of options that differ within a group of runs, and are therefore averaged over."""
    known, paths = options_of(values, by)
    groups: dict[tuple[Any, ...], dict[str, set[str]]] = {}
    for value in values:
        seen = groups.setdefault(tuple(value.get(path) for path in paths), {})
        for path in (known - {"seed"}) & value.keys():
            seen.setdefault(path, set()).add(str(value[path]))
    varied = {path for seen in groups.values() for path, different in seen.items() if len(different) > 1}
    return sorted(path.rpartition(".")[2] for path in varied)


def twin(value: Value) -> tuple[Any, ...]:
    """Return a key that a cell shares with the one that differs from it in debiasing alone."""
    ignored = ("debias", "run", "value", *WITHOUT_EFFECT)
    return tuple(
        sorted(
            (name, str(content))
            for name, content in value.items()
            if name not in ignored and not name.startswith("droptop.")
        )
    )


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
            writer = csv.DictWriter(file, list(rows[0]) if rows else ["test"])
            writer.writeheader()
            writer.writerows(rows)
    else:
        raise BadRequest(f"--export takes a .csv or .parquet file, not {path}")
