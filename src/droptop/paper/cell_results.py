"""What is on the disk of a recipe's cells, by their options. Cells that are not done yet are just not there."""

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

Series = dict[int, float]  # a figure by seed


@dataclass(frozen=True)
class CellResults:
    recipe: Recipe
    scope: Scope
    out: Path

    @cached_property
    def notes(self) -> Measurements:
        """What the recipe measured itself."""
        return Measurements(self.out / f"{self.recipe.name}.json")

    @cached_property
    def configs(self) -> list[Config]:
        """Every configuration that the recipe asks for, once."""
        every = [config for block in self.recipe.study(self.scope) for config in self.scope.expand(block)]
        return list({config.fingerprint(): config for config in every}.values())

    @cached_property
    def results(self) -> dict[str, dict[int, dict[str, Any]]]:
        """result.json of every cell that is done, by run and seed."""
        return {folder_name(config): self.done(config) for config in self.configs}

    def done(self, config: Config) -> dict[int, dict[str, Any]]:
        results = {seed: whole_result(self.folder(config), seed) for seed in config.seeds}
        return {seed: result for seed, result in results.items() if result is not None}

    @property
    def missing(self) -> int:
        """Cells that are not done."""
        return sum(len(config.seeds) - len(self.results[folder_name(config)]) for config in self.configs)

    def folder(self, config: Config) -> Path:
        return self.out / "runs" / folder_name(config)

    # -- Of one cell, named by its options --------------------------------------------------------------------------

    def run(self, cell: CellOptions) -> Path:
        """Its run folder, for recipes that read more than results: metrics, maps, checkpoints."""
        return self.folder(self.scope.config(cell))

    def of(self, cell: CellOptions) -> dict[int, dict[str, Any]]:
        """Its results by seed."""
        return self.results.get(folder_name(self.scope.config(cell)), {})

    def lines(self, cell: CellOptions, seed: int) -> list[dict[str, Any]]:
        """metrics.jsonl of one of its seeds."""
        return read_metrics(self.run(cell), seed)

    def tests(self, cell: CellOptions) -> list[str]:
        """The test sets it was measured on."""
        return list(next(iter(self.of(cell).values()), {"tests": {}})["tests"])

    def series(self, cell: CellOptions, test: str, figure: str) -> Series:
        """One figure on one test set, by seed."""
        values = {seed: result["tests"].get(test, {}).get(figure) for seed, result in self.of(cell).items()}
        return {seed: value for seed, value in values.items() if value is not None}


def paired(before: Series, after: Series) -> tuple[Series, Series]:
    """Both, of the seeds that both have; as they are where one has none yet."""
    seeds = [seed for seed in before if seed in after]
    if not seeds:
        return before, after
    return {seed: before[seed] for seed in seeds}, {seed: after[seed] for seed in seeds}


def average(series: Iterable[Series]) -> Series:
    """The mean of several by seed, of those seeds that all of them have."""
    several = list(series)
    seeds = [seed for seed in (several[0] if several else {}) if all(seed in one for one in several)]
    return {seed: float(np.mean([one[seed] for one in several])) for seed in seeds}


def mean(series: Series) -> Mean:
    """Return mean and standard error over seeds."""
    return Mean(*estimate(series.values()))


def difference(before: Series, after: Series) -> Difference:
    """After minus before, paired by seed."""
    seeds: Sequence[int] = [seed for seed in before if seed in after]
    effect = paired_effect([before[seed] for seed in seeds], [after[seed] for seed in seeds])
    low, high = effect["ci95"] or (None, None)
    return Difference(effect["diff"], low, high, effect["p"], len(seeds))


def relative(before: Series, after: Series, figure: str) -> float | None:
    """The paper's "Rel. Improv.": what is gained, in percent of the figure before; of means, as the paper's is."""
    seeds = [seed for seed in before if seed in after]
    if not seeds:
        return None
    old, new = (float(np.mean([series[seed] for seed in seeds])) for series in (before, after))
    gain = old - new if figure == "F_last" else new - old
    return 100 * gain / old if old else None
