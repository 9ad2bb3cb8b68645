"""Print as CSV what every arm changes in A_avg: beside plain learning, and beside a plain arm of its cost.

    python benchmarks/robust/effects.py benchmarks/h200/seeds/robust-er-tiny.csv > benchmarks/h200/robust-er-tiny.csv

Takes tables of seeds, which `droptop results STUDY --by data,method,debias,iterations,seed --export FILE` writes. A row
per stream, method, arm and test set. `relative` is the difference in percent of the plain mean; p_holm is corrected
over the arms and test sets of a stream and method, as `droptop compare` does it. The plain arm of equal cost does as
many iterations; for arms of one iteration those columns are empty.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

from droptop.results.statistics import estimate, holm, paired_effect

PARTS = ("stream", "method", "arm", "test", "n", "mean", "error")
EFFECT = ("diff", "low", "high", "p")
COLUMNS = (*PARTS, *EFFECT, "p_holm", "relative", *(f"equal {name}" for name in EFFECT), "equal relative")
PLAIN, EQUAL = "none", "equal cost"
BySeed = dict[int, float]


def read(tables: list[str]) -> dict[tuple[str, str], dict[tuple[str, int], dict[str, BySeed]]]:
    """Return A_avg by stream and method, then by debiasing and iterations, test set and seed."""
    found = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for table in tables:
        with Path(table).open(newline="") as file:
            for row in csv.DictReader(file):
                if row["figure"] == "A_avg":
                    tests = found[row["data"], row["method"]][row["debias"], int(row["iterations"])]
                    tests[row["test"]][int(row["seed"])] = float(row["mean"])
    return found


def beside(plain: BySeed, ours: BySeed, begins: str = "") -> dict[str, float | None]:
    """Return the difference of two arms over the seeds that both have; nothing below two seeds."""
    seeds = sorted(plain.keys() & ours.keys())
    if len(seeds) < 2:
        return {}
    effect = paired_effect([plain[seed] for seed in seeds], [ours[seed] for seed in seeds])
    mean, *_ = estimate(plain[seed] for seed in seeds)
    low, high = effect["ci95"] or (None, None)
    row = {"diff": effect["diff"], "low": low, "high": high, "p": effect["p"], "relative": 100 * effect["diff"] / mean}
    return {begins + name: value for name, value in row.items()}


def main(tables: list[str]) -> None:
    writer = csv.DictWriter(sys.stdout, COLUMNS)
    writer.writeheader()
    for (stream, method), arms in read(tables).items():
        rows = []
        for (debias, iterations), tests in arms.items():
            name = EQUAL if debias == PLAIN and iterations > 1 else debias
            for test, values in tests.items():
                mean, error, n = estimate(values.values())
                row = dict(zip(PARTS, (stream, method, name, test, n, mean, error)))
                if name != PLAIN:
                    row |= beside(arms[PLAIN, 1][test], values)
                if debias != PLAIN and iterations > 1 and (PLAIN, iterations) in arms:
                    row |= beside(arms[PLAIN, iterations][test], values, "equal ")
                rows.append(row)
        changed = [row for row in rows if row.get("p") is not None]
        for row, corrected in zip(changed, holm([row["p"] for row in changed])):
            row["p_holm"] = corrected
        writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
