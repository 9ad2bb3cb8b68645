"""What a recipe is: which cells it needs, and what it shows of their results.

For example:

    Recipe("table1", "Table 1", "five replay methods with and without DropTop",
           methods=("er", "mir"), data=("split-cifar10",),
           study=lambda scope: [{"data": scope.data, "method": scope.methods, "debias": ["none", "droptop"]}],
           show=lambda results: [Table(...)])

`study` returns grids in the form of a study.toml. `show` names each cell by the same options, with one value each:
`results.series({"data": "split-cifar10", "method": "er", "debias": "none"}, "clean", "A_avg")` is A_avg of that cell by
seed. The scope adds what holds for every cell (device, root, weights, the small net of a quick look), and the paper's
settings of a method where our default differs.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from droptop.methods import METHODS
from droptop.nets import ViTConfig
from droptop.options import flatten
from droptop.runs.config import Config, has
from droptop.sweeps.grid import FIXED, NAMES, expand
from droptop.system.toml_files import toml_line

if TYPE_CHECKING:
    from droptop.paper.cell_results import CellResults
    from droptop.paper.measurements import Measurements
    from droptop.paper.tables import Output

Grid = dict[str, Any]  # a block of options: one with a list or tuple of values varies
CellOptions = dict[str, Any]  # the options of one cell: one value each

# Options of every cell in a quick look, unless the recipe's grid sets them: three tasks of five steps, a narrow net.
QUICK: dict[str, Any] = {"split": "0,1/2,3/4,5", "limit": 160, "width": 6, "memory": 100}
DECIDES: dict[str, Any] = {"period": 1, "history": 2, "significance": 0.3}  # so that intensities change in so few steps
QUICK_VIT: dict[str, Any] = QUICK | {"width": 32, "depth": 5, "heads": 2, "input_size": 32, "weights": "random"}


@dataclass(frozen=True)
class Scope:
    """Hold the part of a recipe that was asked for, and the options of all its cells."""

    methods: tuple[str, ...]
    data: tuple[str, ...]
    seeds: int
    quick: bool = False
    options: dict[str, Any] = field(default_factory=dict)  # for every cell that has them

    def grids(self, block: Grid) -> list[Grid]:
        """Return the block with the options of every cell added, as far as one of its cells has them.

        Methods with the same settings in the paper share a grid; others get a grid of their own.
        """
        block = {name: list(value) if isinstance(value, tuple) else value for name, value in block.items()}
        wanted = block.get("method", NAMES["method"])
        methods_by_settings: dict[tuple[Any, ...], list[str]] = {}
        for method in wanted if isinstance(wanted, list) else [wanted]:
            methods_by_settings.setdefault(tuple(METHODS[method].paper.items()), []).append(method)
        grids = []
        for settings, methods in methods_by_settings.items():
            part = block | {"method": methods}
            defaults = expand({name: part[name] for name in NAMES if name in part})
            known = {path.rpartition(".")[2] for config in defaults for path in flatten(config)}
            common = dict(settings) | self.options
            grids.append({name: value for name, value in common.items() if name in known} | part)
        return grids

    def expand(self, block: Grid) -> list[Config]:
        """Return the configurations of a block, each with its seeds."""
        return [config for grid in self.grids(block) for config in expand(grid | {"seeds": self.seeds})]

    def config(self, cell: CellOptions) -> Config:
        """Return the configuration that these options stand for, leaving out those that its arm does not have."""
        key = json.dumps(cell, sort_keys=True)
        if key not in self.configs_by_cell:
            [default] = expand({name: cell[name] for name in NAMES if name in cell})
            [config] = self.expand({name: value for name, value in cell.items() if has(default, name)})
            self.configs_by_cell[key] = config
        return self.configs_by_cell[key]

    @cached_property
    def configs_by_cell(self) -> dict[str, Config]:
        """Return the configurations made so far: a table asks for each of them many times."""
        return {}

    def toml(self, blocks: Iterable[Grid]) -> str:
        """Return the study as text that `droptop sweep` takes as well."""
        top = {"seeds": self.seeds} | {name: self.options[name] for name in FIXED if name in self.options}
        grids = [
            {name: value for name, value in grid.items() if name not in top}
            for block in blocks
            for grid in self.grids(block)
        ]
        return "\n[[grid]]\n".join(
            "".join(toml_line(name, value) for name, value in part.items()) for part in (top, *grids)
        )


def no_cells(scope: Scope) -> list[Grid]:
    """Return the empty study of a recipe that needs no cells."""
    return []


@dataclass(frozen=True)
class Recipe:
    """Describe one table or figure of the paper: what to run, what to show, and what it takes."""

    name: str
    place: str  # in the paper
    about: str
    show: Callable[["CellResults"], Sequence["Output"]]
    study: Callable[[Scope], list[Grid]] = no_cells
    measure: Callable[["CellResults", "Measurements"], None] | None = None  # what no cell records; see `measurements`
    methods: tuple[str, ...] = ("er",)
    data: tuple[str, ...] = ("split-cifar10",)  # the paper's streams
    quick_data: tuple[str, ...] = ("fashion-sticker",)  # the streams of a quick look
    quick: dict[str, Any] = field(default_factory=dict)  # changes to the options of a quick look; None removes one
    stand_in: bool = True  # other streams may take the place of `data`
    takes: str = ""  # roughly how long with five seeds, if known

    @property
    def prompts(self) -> bool:
        """Return whether its methods need the weights of a ViT."""
        return any(METHODS[method].net_type is ViTConfig for method in self.methods)

    def quick_options(self) -> dict[str, Any]:
        """Return the options of a quick look."""
        options = (QUICK_VIT if self.prompts else QUICK) | self.quick
        return {name: value for name, value in options.items() if value is not None}
