"""benchmarks/pooled.py: two tables of different seeds are what one table of all seeds would have been."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
from scipy.stats import ttest_rel

SCRIPT = Path(__file__).parent.parent / "benchmarks/pooled.py"


def write_table(path, none, droptop):
    """As `droptop paper table1` writes it, of one method."""
    effect = ttest_rel(droptop, none)
    interval = effect.confidence_interval()
    row = {
        "stream, test set": "S",
        "method": "ER",
        "figure": "A_avg",
        "difference: here n": len(none),
        "difference: here diff": np.mean(droptop - none),
        "difference: here low": interval.low,
        "difference: here high": interval.high,
    }
    for name, arm in (("none", none), ("DropTop", droptop)):
        row |= {
            f"{name}: here mean": arm.mean(),
            f"{name}: here n": len(arm),
            f"{name}: here error": arm.std(ddof=1) / len(arm) ** 0.5,
        }
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow(row)


def test_pooled_is_what_all_seeds_give(tmp_path):
    random = np.random.default_rng(0)
    none, droptop = 50 + random.normal(size=(2, 17)) * 3
    for name, seeds in (("a", slice(0, 10)), ("b", slice(10, 17))):
        write_table(tmp_path / f"{name}.csv", none[seeds], droptop[seeds])
    said = subprocess.run(
        [sys.executable, SCRIPT, tmp_path / "a.csv", tmp_path / "b.csv"], capture_output=True, text=True, check=True
    ).stdout
    effect = ttest_rel(droptop, none)
    interval = effect.confidence_interval()
    arms = " | ".join(f"{arm.mean():.1f} ± {arm.std(ddof=1) / 17**0.5:.1f}" for arm in (none, droptop))
    assert said == (
        f"| S | ER | A_avg | {arms} | {np.mean(droptop - none):+.1f} ({interval.low:+.1f} to "
        f"{interval.high:+.1f}), p = {effect.pvalue:.3f} | n = 17 |\n"
    )
