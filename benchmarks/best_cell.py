"""Print as CSV what the best cell of a grid gains over plain learning, and what choosing the best gains by chance.

    python benchmarks/best_cell.py benchmarks/h200/seeds/sensitivity-tiny-er.csv > benchmarks/h200/best-cell-tiny-er.csv

A row per test set. Takes the cells that have all seeds of the plain runs. By chance: if no setting changed anything, a
seed's figures could as well stand in any other order; 10,000 such orders, drawn per seed, give what the best of as many
cells would then gain. `p` is the share of orders that gain as much as the cells did. "of 5" is the same with five of
the seeds, as many as the paper has.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

SETTINGS = ("kappa_0", "gamma", "alpha", "period")
COLUMNS = ("stream", "method", "test", "cells", "n", "best", "gain", "chance", "chance 95%", "p")
COLUMNS += ("chance of 5", "chance of 5 95%")
ORDERS, PAPER = 10_000, 5
Cell = tuple[str, ...]


def read(path: str) -> dict[tuple[str, str, str], dict[Cell, dict[int, float]]]:
    """Return A_avg by stream, method and test set, then by cell, then by seed; the plain cell is ()."""
    found = defaultdict(lambda: defaultdict(dict))
    with Path(path).open(newline="") as file:
        for row in csv.DictReader(file):
            if row["figure"] == "A_avg":
                cell = () if row["debias"] == "none" else tuple(row[name] for name in SETTINGS)
                found[row["data"], row["method"], row["test"]][cell][int(row["seed"])] = float(row["mean"])
    return found


def gain(values: np.ndarray) -> np.ndarray:
    """Return how far the best cell is above the plain one, in the mean over seeds: (..., seeds, cells), plain first."""
    means = values.mean(-2)
    return means[..., 1:].max(-1) - means[..., 0]


def main(path: str) -> None:
    writer = csv.DictWriter(sys.stdout, COLUMNS)
    writer.writeheader()
    for names, cells in read(path).items():
        seeds = sorted(cells[()])
        whole = [(), *sorted(cell for cell, values in cells.items() if cell and values.keys() >= set(seeds))]
        values = np.array([[cells[cell][seed] for cell in whole] for seed in seeds])
        draws = np.random.default_rng(0)
        orders = [draws.permuted(values, axis=1) for _ in range(ORDERS)]
        chance = np.array([gain(order) for order in orders])
        of_5 = np.array([gain(draws.permutation(order)[:PAPER]) for order in orders])
        best = whole[1 + values.mean(0)[1:].argmax()]
        figures = gain(values), chance.mean(), np.quantile(chance, 0.95), (chance >= gain(values)).mean()
        figures += of_5.mean(), np.quantile(of_5, 0.95)
        words = "; ".join(f"{name} {value}" for name, value in zip(SETTINGS, best))
        writer.writerow(dict(zip(COLUMNS, (*names, len(whole) - 1, len(seeds), words, *figures))))


if __name__ == "__main__":
    main(*sys.argv[1:])
