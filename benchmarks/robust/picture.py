"""Draw what every arm changes on every test set, from the tables that effects.py printed.

    python benchmarks/robust/picture.py benchmarks/h200/robust-er-tiny.csv docs/images/robust.png \\
        average,"equal cost",robust original,only_fg,mixed_rand,mixed_next,stylized
"""

import csv
import sys
from pathlib import Path

import matplotlib.pyplot as plt

from droptop.figures.effects import arm_effects
from droptop.figures.style import STYLE


def main(table: str, picture: str, arms: str, tests: str) -> None:
    with Path(table).open(newline="") as file:
        rows = {(row["arm"], row["test"]): row for row in csv.DictReader(file)}
    effects = {arm: {test: {"A_avg": effect(rows[arm, test])} for test in tests.split(",")} for arm in arms.split(",")}
    counts = sorted({rows[arm, test]["n"] for arm in effects for test in effects[arm]})
    row = rows[arms.split(",")[0], tests.split(",")[0]]
    title = f"{row['method']} on {row['stream']}, {' or '.join(counts)} seeds"
    with plt.rc_context(STYLE):
        arm_effects({"arms": ["none"], "effects": effects}, title).savefig(picture)


def effect(row: dict[str, str]) -> dict[str, object]:
    """Return an effect as `droptop compare` has it, from a row of the table."""
    return {
        "n": int(row["n"]),
        "diff": float(row["diff"]),
        "ci95": [float(row["low"]), float(row["high"])],
        "p": float(row["p"]),
        "p_holm": float(row["p_holm"]),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
