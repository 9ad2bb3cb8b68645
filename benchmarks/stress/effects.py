"""Print as CSV what every cue costs a learner, and what debiasing gives back, as `droptop stress` has it.

    python benchmarks/stress/effects.py benchmarks/h200/seeds/stress-tiny.csv > benchmarks/h200/stress-tiny.csv

Takes a table of seeds, which `droptop results STUDY --by data,method,debias,stream.shortcut,seed --export FILE` writes.
A row per cue and arm: accuracy (A_avg) where the cue is as in training (biased) and where it says nothing (random),
the difference (cost), and beside the same seeds of the plain arm what is gained on random (given back) and what changes
on biased. p_holm is corrected over the cues of the table, for debiased arms over cues times arms.
"""

import csv
import sys
from pathlib import Path
from typing import Any

from droptop.results.statistics import Effect, Estimate
from droptop.results.stress import Stressed, stressed

NAMES = ("data", "method", "cue", "debias")
EFFECTS = ("cost", "given_back", "on_biased")


def read(table: str | Path) -> list[Stressed]:
    """Return a row per cue and arm, the cue that costs plain learning most first, of a table of seeds."""
    with Path(table).open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["mean"]]
    return stressed(row | {"seed": int(row["seed"]), "value": float(row["mean"])} for row in rows)


def cells(row: Stressed) -> dict[str, Any]:
    """Return the columns of a row."""
    found: dict[str, Any] = {name: getattr(row, name) for name in NAMES} | {"n": row.cost["n"]}
    found |= of_mean("biased", row.biased) | of_mean("random", row.random)
    for name in EFFECTS:
        found |= of_effect(name.replace("_", " "), getattr(row, name))
    return found


def of_mean(name: str, mean: Estimate) -> dict[str, float | None]:
    """Return the columns of a mean."""
    return {f"{name} mean": mean.mean, f"{name} error": mean.error}


def of_effect(name: str, effect: Effect | None) -> dict[str, float | None]:
    """Return the columns of a difference, empty where there is none."""
    low, high = (effect and effect["ci95"]) or (None, None)
    values = {"diff": effect and effect["diff"], "low": low, "high": high}
    values |= {part: effect and effect[part] for part in ("p", "p_holm")}
    return {f"{name} {part}": value for part, value in values.items()}


def main(table: str) -> None:
    rows = [cells(row) for row in read(table)]
    if not rows:
        sys.exit(f"{table} has no A_avg of a painted cue on biased and random")
    writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
