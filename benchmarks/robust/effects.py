"""Print as CSV what every arm of studies changes in A_avg: beside plain learning, and beside a plain arm of its cost.

    python benchmarks/robust/effects.py studies/er-tiny studies/parts-tiny > benchmarks/h200/robust-er-tiny.csv

A row per stream, method, arm and test set. `relative` is the difference in percent of the plain mean; p_holm is
corrected over the arms and test sets of a stream and method, as `droptop compare` does it. The plain arm of equal cost
is the one that replays as much; where there is none, those columns are empty.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

from droptop.results.statistics import estimate, holm, paired_effect
from droptop.sweeps.study_folder import StudyFolder

PARTS = ("stream", "method", "arm", "test", "n", "mean", "error")
EFFECT = ("diff", "low", "high", "p")
COLUMNS = (*PARTS, *EFFECT, "p_holm", "relative", *(f"equal {name}" for name in EFFECT), "equal relative")
BySeed = dict[int, float]


def read(studies: list[str]) -> dict[tuple[str, str], dict[tuple[str, int], dict[str, BySeed]]]:
    """Return A_avg by stream and method, then by debiasing and memory batch, test set and seed."""
    found = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for study in studies:
        for value in StudyFolder(Path(study)).values():
            if value["figure"] == "A_avg" and value["value"] is not None:
                arm = value["debias"], value["learner.memory_batch"]
                found[value["data"], value["method"]][arm][value["test"]][value["seed"]] = value["value"]
    return found


def beside(plain: BySeed, ours: BySeed, begins: str = "") -> dict[str, float | None]:
    """Return the difference of two arms over the seeds that both have."""
    seeds = sorted(plain.keys() & ours.keys())
    effect = paired_effect([plain[seed] for seed in seeds], [ours[seed] for seed in seeds])
    mean, *_ = estimate(plain[seed] for seed in seeds)
    low, high = effect["ci95"] or (None, None)
    row = {"diff": effect["diff"], "low": low, "high": high, "p": effect["p"], "relative": 100 * effect["diff"] / mean}
    return {begins + name: value for name, value in row.items()}


def main(studies: list[str]) -> None:
    writer = csv.DictWriter(sys.stdout, COLUMNS)
    writer.writeheader()
    for (stream, method), arms in read(studies).items():
        usual = min(batch for debias, batch in arms if debias == "none")
        rows = []
        for (debias, batch), tests in sorted(arms.items(), key=lambda item: (item[0][1], item[0][0] != "none")):
            name = debias if debias != "none" or batch == usual else "equal cost"
            for test, values in tests.items():
                mean, error, n = estimate(values.values())
                row = dict(zip(PARTS, (stream, method, name, test, n, mean, error)))
                if name != "none":
                    row |= beside(arms["none", usual][test], values)
                if batch != usual and debias != "none" and ("none", batch) in arms:
                    row |= beside(arms["none", batch][test], values, "equal ")
                rows.append(row)
        changed = [row for row in rows if "p" in row]
        for row, corrected in zip(changed, holm([row["p"] for row in changed])):
            row["p_holm"] = corrected
        writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
