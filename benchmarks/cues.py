"""Print as CSV what each painted cue costs a learner, and what debiasing gives back, from studies of `droptop stress`.

    python benchmarks/cues.py studies/stress > benchmarks/cpu/stress-fashion.csv

A row per cue and arm: accuracy on both test sets, what the cue costs, and what the arm changes beside the plain one.
"""

import csv
import sys
from pathlib import Path

from droptop.results.statistics import Effect
from droptop.results.stress import Stressed, stressed
from droptop.sweeps.study_folder import StudyFolder

SETS = ("biased", "random")
DIFFERENCES = {"cost": "cost", "given back": "given_back", "on biased": "on_biased"}
PARTS = ("diff", "low", "high", "p", "p_holm")


def main(studies: list[str]) -> None:
    sets = [f"{test} {part}" for test in SETS for part in ("mean", "error")]
    differences = [f"{name} {part}" for name in DIFFERENCES for part in PARTS]
    writer = csv.writer(sys.stdout)
    writer.writerow(["stream", "method", "cue", "arm", "n", *sets, *differences])
    for row in stressed(value for study in studies for value in StudyFolder(Path(study)).values()):
        writer.writerow(cells(row))


def cells(row: Stressed) -> list[object]:
    """Return the cells of a row, empty where nothing was measured."""
    sets = [number for test in SETS for number in getattr(row, test)[:2]]
    differences = [number for name in DIFFERENCES.values() for number in parts(getattr(row, name))]
    return [row.data, row.method, row.cue, row.debias, row.biased.n, *sets, *differences]


def parts(effect: Effect | None) -> list[float | None]:
    """Return a difference under PARTS; nothing of the plain arm, which has none."""
    if effect is None:
        return [None] * len(PARTS)
    return [effect["diff"], *(effect["ci95"] or (None, None)), effect["p"], effect.get("p_holm")]


if __name__ == "__main__":
    main(sys.argv[1:])
