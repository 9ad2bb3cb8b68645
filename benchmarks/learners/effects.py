"""Print as CSV what every learner reaches on Split CIFAR-10, beside its paper, and what debiasing changes.

    python benchmarks/learners/effects.py benchmarks/h200/seeds/learners-*.csv > benchmarks/h200/learners-cifar10.csv

Takes tables of seeds, which `droptop results STUDY --by data,method,debias,batch,memory_batch,seed --export FILE`
writes. A row per method, batches and arm; differences are to the plain arm with the same batches, over the seeds that
both have. p_holm is corrected over all differences of a figure.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from droptop.options import NO_DEBIAS
from droptop.results.statistics import estimate, holm, paired_effect

FIGURES = ("A_avg", "A_last", "F_last")
PUBLISHED = {  # accuracy after the last task, mean and standard deviation, memory 500
    "er": "55.7 ± 2.0",  # Michel et al. 2024, Table 3
    "mkd": "68.5 ± 0.9",  # the same, ER with MKD
    "scr": "59.6 ± 1.2",  # Mai et al. 2021, Table 1
}
FROZEN = ("ncm", "slda", "ranpac")  # batches do not matter to them
Key = tuple[str, str, str]  # method, batches, arm
BySeed = dict[int, float]


def read(tables: list[str]) -> dict[Key, dict[str, BySeed]]:
    """Return figures by seed of every method, batches ("32 + 32": stream and memory) and arm."""
    found: dict[Key, dict[str, BySeed]] = defaultdict(lambda: defaultdict(dict))
    for table in tables:
        with Path(table).open(newline="") as file:
            for row in csv.DictReader(file):
                if row["figure"] in FIGURES and row["mean"]:
                    batches = "" if row["method"] in FROZEN else f"{row['batch']} + {row['memory_batch']}"
                    key = (row["method"], batches, row["debias"])
                    found[key][row["figure"]][int(row["seed"])] = float(row["mean"])
    return found


def beside(plain: BySeed, ours: BySeed) -> dict[str, float | None]:
    """Return the difference of two arms over the seeds that both have; nothing below two seeds."""
    seeds = sorted(plain.keys() & ours.keys())
    if len(seeds) < 2:
        return {}
    effect = paired_effect([plain[seed] for seed in seeds], [ours[seed] for seed in seeds])
    low, high = effect["ci95"] or (None, None)
    return {"diff": effect["diff"], "low": low, "high": high, "p": effect["p"]}


def row_of(key: Key, figures: dict[str, BySeed], plain: dict[str, BySeed] | None) -> dict[str, Any]:
    """Return the columns of a row, without corrected p-values."""
    method, batches, arm = key
    row: dict[str, Any] = {"method": method, "batches": batches, "arm": arm, "n": len(figures[FIGURES[0]])}
    row["published A_last"] = PUBLISHED.get(method, "") if arm == NO_DEBIAS else ""
    for figure in FIGURES:
        row[f"{figure} mean"], row[f"{figure} error"], _ = estimate(figures[figure].values())
        change = {} if plain is None or arm == NO_DEBIAS else beside(plain[figure], figures[figure])
        row |= {f"{figure} {part}": change.get(part) for part in ("diff", "low", "high", "p")}
    return row


def main(tables: list[str]) -> None:
    found = read(tables)
    rows = [row_of(key, figures, found.get((*key[:2], NO_DEBIAS))) for key, figures in found.items()]
    for figure in FIGURES:
        changed = [row for row in rows if row[f"{figure} p"] is not None]
        corrected = dict(zip(map(id, changed), holm([row[f"{figure} p"] for row in changed])))
        for row in rows:
            row[f"{figure} p_holm"] = corrected.get(id(row))
    if not rows:
        sys.exit(f"{', '.join(tables) or 'no table'}: no {', '.join(FIGURES)}")
    writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
