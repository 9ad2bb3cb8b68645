"""Print as CSV what every arm gains by kind of shortcut, in percent of plain learning: robust.md's first table.

    python benchmarks/robust/summary.py benchmarks/h200/seeds/robust-*.csv > benchmarks/h200/robust-summary.csv

Takes the tables of seeds that effects.py takes. A row per method, arm and kind: the difference to plain learning in
A_avg, averaged over the test sets of that kind seed by seed, and its 95% interval, both in percent of plain learning's
mean; empty where fewer than five seeds were measured on all of these sets, without a row where that is so everywhere.
"""

import csv
import sys

from effects import EQUAL, PLAIN, BySeed, beside, read

from droptop.results.statistics import FEWEST

TINY = "split-tiny-imagenet9"
CUES = ("fashion-sticker", "fashion-background", "fashion-colour")
KINDS = {
    "photographs": [(TINY, "original")],
    "other background or texture": [(TINY, test) for test in ("only_fg", "mixed_rand", "mixed_next", "stylized")],
    "sticker gone": [("fashion-sticker", test) for test in ("removed", "random")],
    "texture gone": [("fashion-background", test) for test in ("removed", "random")],
    "colour gone": [("fashion-colour", test) for test in ("plain", "random")],
    "cue kept": [(stream, "biased") for stream in CUES],
    "no cue": [("fashion", "clean")],
    "CIFAR-10": [("split-cifar10", "clean")],
    "CIFAR-100": [("split-cifar100", "clean")],
}
ARMS = ("average", "robust-light", "robust", "robust+droptop", "droptop", EQUAL)  # as they are listed
COLUMNS = ("method", "arm", "kind", "n", "seeds", "diff", "low", "high", "p")
SHARES = ("diff", "low", "high")
Measured = dict[tuple[str, str, str, int], dict[str, BySeed]]  # stream, method, debiasing, iterations; test set


def mean_of(found: Measured, method: str, arm: tuple[str, int], places: list[tuple[str, str]]) -> BySeed:
    """Return the mean over test sets of every seed that has been measured on all of them."""
    sets = [found.get((stream, method, *arm), {}).get(test, {}) for stream, test in places]
    seeds = set.intersection(*(set(values) for values in sets))
    return {seed: sum(values[seed] for values in sets) / len(sets) for seed in seeds}


def row_of(found: Measured, method: str, arm: tuple[str, int], kind: str) -> dict[str, object]:
    """Return the columns of a row; no numbers below five seeds."""
    plain, ours = (mean_of(found, method, each, KINDS[kind]) for each in ((PLAIN, 1), arm))
    row: dict[str, object] = {"method": method, "arm": name_of(arm), "kind": kind}
    seeds = sorted(plain.keys() & ours.keys())
    if len(seeds) < FEWEST:
        return row
    effect = beside(plain, ours)
    usual = sum(plain[seed] for seed in seeds) / len(seeds)
    row |= {"n": len(seeds), "seeds": f"n = {len(seeds)}", "p": effect["p"]}
    return row | {part: 100 * effect[part] / usual for part in SHARES}


def name_of(arm: tuple[str, int]) -> str:
    """Return the name of an arm: of plain learning with more iterations, that of equal cost."""
    debias, iterations = arm
    return EQUAL if debias == PLAIN and iterations > 1 else debias


def place_of(arm: tuple[str, int]) -> int:
    """Return where an arm is listed."""
    return ARMS.index(name_of(arm)) if name_of(arm) in ARMS else len(ARMS)


def main(tables: list[str]) -> None:
    found = {
        (stream, method, *arm): tests for (stream, method), arms in read(tables).items() for arm, tests in arms.items()
    }
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for method in dict.fromkeys(key[1] for key in found):
        arms = {key[2:] for key in found if key[1] == method} - {(PLAIN, 1)}
        for arm in sorted(arms, key=lambda arm: (place_of(arm), arm)):
            rows = [row_of(found, method, arm, kind) for kind in KINDS]
            if any("n" in row for row in rows):
                writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
