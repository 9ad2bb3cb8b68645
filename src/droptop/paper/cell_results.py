"""What is on the disk of a recipe's cells, by their options. Cells that are not finished are left out everywhere."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from droptop.paper.measurements import Measurements
from droptop.paper.recipe import CellOptions, Recipe, Scope
from droptop.paper.tables import Difference, Mean
from droptop.results.statistics import estimate, paired_effect
from droptop.runs.config import Config
from droptop.runs.folder import read_metrics, whole_result
from droptop.sweeps.grid import folder_name

Series = dict[int, float]  # one figure by seed


@dataclass(frozen=True)
class CellResults:
    """Read what the cells of a recipe measured, of a folder OUT."""

    recipe: Recipe
    scope: Scope
    out: Path

    @cached_property
    def measurements(self) -> Measurements:
        """Return what the recipe measured itself."""
        return Measurements(self.out / f"{self.recipe.name}.json")

    @cached_property
    def configs(self) -> list[Config]:
        """Return every configuration of the recipe, each once."""
        every = [config for block in self.recipe.study(self.scope) for config in self.scope.expand(block)]
        return list({config.fingerprint(): config for config in every}.values())

    @cached_property
    def finished(self) -> dict[str, dict[int, dict[str, Any]]]:
        """Return result.json of every finished cell, by the name of its run folder and by seed."""
        return {folder_name(config): self.read_results(config) for config in self.configs}

    def read_results(self, config: Config) -> dict[int, dict[str, Any]]:
        """Read the results of a configuration's finished seeds."""
        results = {seed: whole_result(self.folder(config), seed) for seed in config.seeds}
        return {seed: result for seed, result in results.items() if result is not None}

    @property
    def missing(self) -> int:
        """Return how many cells are not finished."""
        return sum(len(config.seeds) - len(self.finished[folder_name(config)]) for config in self.configs)

    def folder(self, config: Config) -> Path:
        """Return the run folder of a configuration."""
        return self.out / "runs" / folder_name(config)

    # -- Of one cell, named by its options --------------------------------------------------------------------------

    def run_folder(self, cell: CellOptions) -> Path:
        """Return the cell's run folder, for recipes that read more than results: metrics, maps, checkpoints."""
        return self.folder(self.scope.config(cell))

    def by_seed(self, cell: CellOptions) -> dict[int, dict[str, Any]]:
        """Return the cell's results by seed."""
        return self.finished.get(folder_name(self.scope.config(cell)), {})

    def metrics(self, cell: CellOptions, seed: int) -> list[dict[str, Any]]:
        """Return the lines of metrics.jsonl of one seed."""
        return read_metrics(self.run_folder(cell), seed)

    def test_sets(self, cell: CellOptions) -> list[str]:
        """Return the test sets on which the cell was measured."""
        return list(next(iter(self.by_seed(cell).values()), {"tests": {}})["tests"])

    def series(self, cell: CellOptions, test: str, figure: str) -> Series:
        """Return one figure on one test set, by seed."""
        values = {seed: result["tests"].get(test, {}).get(figure) for seed, result in self.by_seed(cell).items()}
        return {seed: value for seed, value in values.items() if value is not None}


def common_seeds(before: Series, after: Series) -> list[int]:
    """Return the seeds that both series have."""
    return [seed for seed in before if seed in after]


def paired(before: Series, after: Series) -> tuple[Series, Series]:
    """Return both series with the seeds that they have in common, or unchanged where they have none."""
    seeds = common_seeds(before, after)
    if not seeds:
        return before, after
    return {seed: before[seed] for seed in seeds}, {seed: after[seed] for seed in seeds}


def average(series: Iterable[Series]) -> Series:
    """Return the mean of the series by seed, for the seeds that all of them have."""
    every = list(series)
    seeds = [seed for seed in (every[0] if every else {}) if all(seed in values for values in every)]
    return {seed: float(np.mean([values[seed] for values in every])) for seed in seeds}


def mean(series: Series) -> Mean:
    """Return mean and standard error over seeds."""
    return Mean(*estimate(series.values()))


def difference(before: Series, after: Series) -> Difference:
    """Return after minus before, paired by seed."""
    seeds: Sequence[int] = common_seeds(before, after)
    effect = paired_effect([before[seed] for seed in seeds], [after[seed] for seed in seeds])
    low, high = effect["ci95"] or (None, None)
    return Difference(effect["diff"], low, high, effect["p"], len(seeds))


def relative(before: Series, after: Series, figure: str) -> float | None:
    """Return the paper's "Rel. Improv.": the gain in percent of the figure before; None without a common seed.

    It is computed from means over seeds, as the paper's is.
    """
    seeds = common_seeds(before, after)
    if not seeds:
        return None
    old, new = (float(np.mean([series[seed] for seed in seeds])) for series in (before, after))
    gain = old - new if figure == "F_last" else new - old
    return 100 * gain / old if old else None
