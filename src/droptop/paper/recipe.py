"""What a recipe is: which cells it needs, and what it shows of them.

    Recipe("table1", "Table 1", "five replay methods with and without DropTop",
           methods=("er", "mir"), data=("split-cifar10",),
           study=lambda scope: [{"data": scope.data, "method": scope.methods, "debias": ["none", "droptop"]}],
           show=lambda results: [Table(...)])

`study` gives grids as a study.toml holds them. `show` asks for cells by the same options, one value each:
`results.series({"data": "split-cifar10", "method": "er", "debias": "none"}, "clean", "A_avg")` is what that cell
measured, by seed. What holds for all cells (device, root, weights, a quick look's small net) the scope adds by itself,
and what the paper has for a method where our default is another.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from droptop.methods import METHODS
from droptop.nets import ViTConfig
from droptop.options import flatten
from droptop.runs.config import Config
from droptop.sweeps.grid import FIXED, NAMES, expand, has
from droptop.system.toml_files import toml_line

if TYPE_CHECKING:
    from droptop.paper.cell_results import CellResults
    from droptop.paper.measurements import Measurements
    from droptop.paper.tables import Output

Grid = dict[str, Any]  # a grid: an option with a list or tuple of values varies
CellOptions = dict[str, Any]  # one value each

# What a quick look makes of every cell, unless a block says otherwise: three tasks of five steps, a narrow net.
QUICK: dict[str, Any] = {"split": "0,1/2,3/4,5", "limit": 160, "width": 6, "memory": 100}
DECIDES: dict[str, Any] = {"period": 1, "history": 2, "significance": 0.3}  # on intensities, in so few steps
QUICK_VIT: dict[str, Any] = QUICK | {"width": 32, "depth": 5, "heads": 2, "input_size": 32, "weights": "random"}


@dataclass(frozen=True)
class Scope:
    """What was asked for, of all that a recipe could run."""

    methods: tuple[str, ...]
    data: tuple[str, ...]
    seeds: int
    quick: bool = False
    options: dict[str, Any] = field(default_factory=dict)  # of every cell that has them

    def grids(self, block: Grid) -> list[Grid]:
        """A block with what holds for every cell, as far as one of its own has it; a grid for all methods of which the
        paper has the same."""
        own = {name: list(value) if isinstance(value, tuple) else value for name, value in block.items()}
        asked = own.get("method", NAMES["method"])
        alike: dict[tuple[Any, ...], list[str]] = {}
        for method in asked if isinstance(asked, list) else [asked]:
            alike.setdefault(tuple(METHODS[method].paper.items()), []).append(method)
        grids = []
        for paper, methods in alike.items():
            part = own | {"method": methods}
            kinds = expand({name: part[name] for name in NAMES if name in part})
            known = {path.rpartition(".")[2] for config in kinds for path in flatten(config)}
            common = dict(paper) | self.options
            grids.append({name: value for name, value in common.items() if name in known} | part)
        return grids

    def expand(self, block: Grid) -> list[Config]:
        """The configurations of a block, each with its seeds."""
        return [config for grid in self.grids(block) for config in expand(grid | {"seeds": self.seeds})]

    def config(self, cell: CellOptions) -> Config:
        """The one that a cell's options stand for; those that its arm does not have are left out, as in a grid."""
        key = json.dumps(cell, sort_keys=True)
        if key not in self.asked_for:
            [kind] = expand({name: cell[name] for name in NAMES if name in cell})
            [self.asked_for[key]] = self.expand({name: value for name, value in cell.items() if has(kind, name)})
        return self.asked_for[key]

    @cached_property
    def asked_for(self) -> dict[str, Config]:
        """Configurations by their cells: a table asks for each of them many times."""
        return {}

    def toml(self, blocks: Iterable[Grid]) -> str:
        """The study, which `droptop sweep` takes as well."""
        top = {"seeds": self.seeds} | {name: self.options[name] for name in FIXED if name in self.options}
        grids = [
            {name: value for name, value in grid.items() if name not in top}
            for block in blocks
            for grid in self.grids(block)
        ]
        return "\n[[grid]]\n".join(
            "".join(toml_line(name, value) for name, value in part.items()) for part in (top, *grids)
        )


def nothing(scope: Scope) -> list[Grid]:
    """The study of a recipe that needs no cells."""
    return []


@dataclass(frozen=True)
class Recipe:
    """One table or figure of the paper."""

    name: str
    place: str  # in the paper
    about: str
    show: Callable[["CellResults"], Sequence["Output"]]
    study: Callable[[Scope], list[Grid]] = nothing
    measure: Callable[["CellResults", "Measurements"], None] | None = (
        None  # what is no cell, such as times; see `measurements`
    )
    methods: tuple[str, ...] = ("er",)
    data: tuple[str, ...] = ("split-cifar10",)  # the paper's
    quick_data: tuple[str, ...] = ("fashion-sticker",)  # in their place in a quick look
    quick: dict[str, Any] = field(default_factory=dict)  # options of a quick look beside the usual ones; None: not one
    stand_in: bool = True  # may other streams be asked for?
    takes: str = ""  # roughly how long with five seeds, if known

    @property
    def prompts(self) -> bool:
        """Do its methods need the weights of a ViT?"""
        return any(METHODS[method].net_type is ViTConfig for method in self.methods)

    def quickly(self) -> dict[str, Any]:
        """The options of a quick look."""
        options = (QUICK_VIT if self.prompts else QUICK) | self.quick
        return {name: value for name, value in options.items() if value is not None}
