"""Two tables of one recipe, whose seeds differ, as one: `python benchmarks/pooled.py A.csv B.csv`.

A table has the mean and the standard error of n seeds, or the mean and the 95% interval of n differences. Either tells
their sum and their sum of squares, which add up: what is printed is what all seeds together would have given.
"""

import csv
import math
import sys
from typing import NamedTuple

from scipy.stats import t


class Sample(NamedTuple):
    n: int
    mean: float
    spread: float  # standard deviation

    def __add__(self, other: "Sample") -> "Sample":  # type: ignore[override]
        n = self.n + other.n
        mean = (self.n * self.mean + other.n * other.mean) / n
        squares = sum((one.n - 1) * one.spread**2 + one.n * (one.mean - mean) ** 2 for one in (self, other))
        return Sample(n, mean, math.sqrt(squares / (n - 1)))

    @property
    def error(self) -> float:
        return self.spread / math.sqrt(self.n)


def arm(row: dict[str, str], name: str) -> Sample:
    n = int(row[f"{name}: here n"])
    return Sample(n, float(row[f"{name}: here mean"]), float(row[f"{name}: here error"]) * math.sqrt(n))


def effect(row: dict[str, str]) -> Sample:
    n = int(row["difference: here n"])
    half = (float(row["difference: here high"]) - float(row["difference: here low"])) / 2
    return Sample(n, float(row["difference: here diff"]), half / t.ppf(0.975, n - 1) * math.sqrt(n))


def read(path: str) -> dict[tuple[str, ...], dict[str, str]]:
    with open(path, newline="") as file:
        return {(row["stream, test set"], row["method"], row["figure"]): row for row in csv.DictReader(file)}


if __name__ == "__main__":
    first, second = map(read, sys.argv[1:3])
    for place in second:
        one, two = first[place], second[place]
        plain, debiased = (arm(one, name) + arm(two, name) for name in ("none", "DropTop"))
        both = effect(one) + effect(two)
        half, p = both.error * t.ppf(0.975, both.n - 1), 2 * t.sf(abs(both.mean) / both.error, both.n - 1)
        print(
            f"| {' | '.join(place)} | {plain.mean:.1f} ± {plain.error:.1f} | {debiased.mean:.1f} ± "
            f"{debiased.error:.1f} | {both.mean:+.1f} ({both.mean - half:+.1f} to {both.mean + half:+.1f}), "
            f"p = {p:.3f} | n = {both.n} |"
        )
