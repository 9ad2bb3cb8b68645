"""The results of a study: means, grouped by any options, and what debiasing changes, paired by seed and corrected."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from droptop.errors import BadRequest
from droptop.options import NO_DEBIAS, WITHOUT_EFFECT, ending_in
from droptop.recipes import recipe_of
from droptop.results.statistics import estimate, holm, paired_effect
from droptop.system.short_names import short_names

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
    plain = Plain(values)
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
            (value["seed"], value["value"] - twin["value"])
            for value in members
            if (twin := plain.twin(value)) is not None and twin["value"] is not None
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


class Plain:
    """Find the plain twin of a debiased cell: the one that differs from it in debiasing alone.

    Options that a recipe sets, such as the averaged weights of `robust`, are part of the debiasing. Where several plain
    cells differ in these, the twin is the one with the least of them: the cheapest.
    """

    def __init__(self, values: Sequence[Value]) -> None:
        self.plain = sorted(
            (value for value in values if value.get("debias") == NO_DEBIAS),
            key=lambda value: sorted((path, sort_key(content)) for path, content in value.items()),
            reverse=True,  # so that the least comes last, and stays
        )
        self.by_key: dict[tuple[str, ...], dict[Any, Value]] = {}  # by the names that are left out of the key

    def twin(self, value: Value) -> Value | None:
        """Return the plain cell of a debiased one; None where there is none, or for a cell that is plain."""
        if value.get("debias") == NO_DEBIAS:
            return None
        recipe = recipe_of(str(value.get("debias")))
        names = (*recipe.options, *recipe.factors)
        if names not in self.by_key:
            self.by_key[names] = {key_of(plain, names): plain for plain in self.plain}
        return self.by_key[names].get(key_of(value, names))


def key_of(value: Value, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return what a cell shares with its twins: all options but those of debiasers and those of some names."""
    ignored = ("debias", "run", "value", *WITHOUT_EFFECT, *(path for name in names for path in ending_in(name, value)))
    return tuple(
        sorted(
            (path, str(content))
            for path, content in value.items()
            if path not in ignored and ("." not in path or path.partition(".")[0] in ("stream", "net", "learner"))
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
