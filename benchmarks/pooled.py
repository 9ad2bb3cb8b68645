"""Pool two tables of one recipe that have different seeds: `python benchmarks/pooled.py A.csv B.csv`.

A table has the mean and the standard error of n seeds, or the mean and the 95% interval of n differences. Both
determine the sum and the sum of squares, which add up: the printed table is that of all seeds together.
scripts/evidence.py renders such rows too.
"""

import csv
import math
import sys
from typing import NamedTuple

from scipy.stats import t

Row = dict[str, str]


class Sample(NamedTuple):
    """Hold the size, the mean and the standard deviation of a sample; + pools two of them."""

    n: int
    mean: float
    spread: float

    def __add__(self, other: "Sample") -> "Sample":  # type: ignore[override]
        n = self.n + other.n
        mean = (self.n * self.mean + other.n * other.mean) / n
        squares = sum((part.n - 1) * part.spread**2 + part.n * (part.mean - mean) ** 2 for part in (self, other))
        return Sample(n, mean, math.sqrt(squares / (n - 1)))

    @property
    def error(self) -> float:
        """Return the standard error of the mean."""
        return self.spread / math.sqrt(self.n)


def arm(row: Row, name: str) -> Sample:
    """Return the sample of one arm in a row of a table."""
    n = int(row[f"{name}: here n"])
    return Sample(n, float(row[f"{name}: here mean"]), float(row[f"{name}: here error"]) * math.sqrt(n))


def effect(row: Row) -> Sample:
    """Return the sample of the differences in a row of a table."""
    n = int(row["difference: here n"])
    half = (float(row["difference: here high"]) - float(row["difference: here low"])) / 2
    return Sample(n, float(row["difference: here diff"]), half / t.ppf(0.975, n - 1) * math.sqrt(n))


def place(row: Row) -> tuple[str, ...]:
    """Return what a row is about: two rows of one place are pooled."""
    return row["stream, test set"], row["method"], row["figure"]


def read(path: str) -> dict[tuple[str, ...], Row]:
    """Return the rows of a table by place."""
    with open(path, newline="") as file:
        return {place(row): row for row in csv.DictReader(file)}


def pool(first: Row, second: Row) -> Row:
    """Return one row for two, with its own verdict; without Holm's correction, which belongs to one table."""
    row = first | {"difference: here p_holm": ""}
    for name in ("none", "DropTop"):
        both = arm(first, name) + arm(second, name)
        numbers = {"mean": both.mean, "error": both.error, "n": both.n}
        row |= {f"{name}: here {part}": str(value) for part, value in numbers.items()}
    both = effect(first) + effect(second)
    half, p = both.error * t.ppf(0.975, both.n - 1), 2 * t.sf(abs(both.mean) / both.error, both.n - 1)
    numbers = {"diff": both.mean, "low": both.mean - half, "high": both.mean + half, "p": p, "n": both.n}
    row |= {f"difference: here {part}": str(value) for part, value in numbers.items()}
    return row | {"n": str(both.n), "verdict": verdict(row) if "verdict" in row else ""}


def verdict(row: Row) -> str:
    """Return the verdict on a row by the rule of docs/paper.md."""
    before, after = (
        tuple(float(row[f"{name}: paper (quoted) {part}"]) for part in ("mean", "error"))
        for name in ("none", "DropTop")
    )
    gain = round(after[0] - before[0], 1)
    if abs(gain) < 2 * math.hypot(before[1], after[1]):
        return "no claim"
    side = math.copysign(1, gain)
    near, far = sorted(side * float(row[f"difference: here {end}"]) for end in ("low", "high"))
    return "not reproduced" if near <= 0 else "reproduced" if far >= abs(gain) else "partly"


if __name__ == "__main__":
    first, second = map(read, sys.argv[1:3])
    for key in second:
        row = pool(first[key], second[key])
        plain, debiased = (f"{arm(row, name).mean:.1f} ± {arm(row, name).error:.1f}" for name in ("none", "DropTop"))
        diff, low, high, p = (float(row[f"difference: here {name}"]) for name in ("diff", "low", "high", "p"))
        print(
            f"| {' | '.join(key)} | {plain} | {debiased} | {diff:+.1f} ({low:+.1f} to {high:+.1f}), p = {p:.3f} | "
            f"n = {row['n']} |"
        )
