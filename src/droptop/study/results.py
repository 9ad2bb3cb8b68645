"""What a study found: means by whatever options, and what debiasing changes, paired by seed and corrected."""

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from droptop.errors import BadRequest
from droptop.results.compare import holm, paired_effect

FIGURES = ("A_avg", "A_last", "F_last")
Value = dict[str, Any]  # a figure of a cell, with its options


def option(name: str, known: Iterable[str]) -> str:
    """The option that `name` is an end of."""
    wanted, names = name.replace("-", "_"), list(known)
    found = [path for path in names if path == wanted or path.endswith("." + wanted)]
    if len(found) != 1:
        raise BadRequest(f"--by takes options of the study's runs, such as data, method, debias or lr, not {name}")
    return found[0]


def rows(values: Sequence[Value], by: Sequence[str], figures: Sequence[str] = FIGURES,
         tests: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A row for every group, test set and figure. Where something is debiased, also its difference to the same runs
    without (same options and seed); p_holm is corrected for all comparisons in these rows (Holm, 1979)."""
    paths = [option(name, {path for value in values for path in value}) for name in by]
    plain = {twin(value): value["value"] for value in values if value.get("debias") == "none"}
    groups: dict[tuple[Any, ...], list[Value]] = {}
    for value in values:
        if value["figure"] in figures and (not tests or value["test"] in tests) and value["value"] is not None:
            key = (*(value.get(path) for path in paths), value["test"], value["figure"])
            groups.setdefault(key, []).append(value)
    found = []
    for key in sorted(groups, key=lambda key: tuple("" if part in (None, "none") else str(part) for part in key)):
        members = groups[key]
        numbers = np.array([value["value"] for value in members], dtype=float)
        row: dict[str, Any] = dict(zip([*by, "test", "figure"], key))
        row |= {"n": len(numbers), "mean": float(numbers.mean()),
                "error": float(numbers.std(ddof=1) / math.sqrt(len(numbers))) if len(numbers) > 1 else None}
        pairs = [(plain[twin(value)], value["value"]) for value in members
                 if value.get("debias") != "none" and plain.get(twin(value)) is not None]
        effect = paired_effect([a for a, _ in pairs], [b for _, b in pairs])
        low, high = effect["ci95"] or (None, None)
        row |= {"pairs": len(pairs), "diff": effect["diff"], "low": low, "high": high, "p": effect["p"]}
        found.append(row)
    for row, corrected in zip(found, holm([row["p"] for row in found])):
        row["p_holm"] = corrected
    return found


def twin(value: Value) -> tuple[Any, ...]:
    """What a cell has in common with the one that differs from it in debiasing alone."""
    own = ("debias", "run", "value")
    return tuple(sorted((name, str(content)) for name, content in value.items()
                        if name not in own and not name.startswith("droptop.")))


def export(found: list[dict[str, Any]], path: Path) -> None:
    """Writes rows as CSV or, by its ending, Parquet."""
    if path.suffix == ".parquet":
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise BadRequest("--export to Parquet needs pyarrow: pip install pyarrow, or name a .csv") from None
        parquet.write_table(pyarrow.Table.from_pylist(found), path)
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(found[0]) if found else ["test"])
            writer.writeheader()
            writer.writerows(found)
    else:
        raise BadRequest(f"--export takes a .csv or .parquet file, not {path}")
