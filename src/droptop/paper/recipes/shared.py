"""Arms, notes and drawing that several recipes have in common."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from droptop.paper.recipe import CellOptions, Scope
from droptop.results.statistics import standard_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STATISTICS = (
    "Mean ± standard error over n seeds; differences are paired by seed, with 95% intervals and two-sided "
    "p-values, **bold** where p < 0.05."
)
ARMS = {"none": "ER", "droptop": "ER + DropTop"}
# Of the experiments of appendix B, Figure 6 and Table 4: "For the empirical proofs in Appendix B, we use ER with the
# ResNet18 backbone and SGD with an initial learning rate of 0.001. The size of episodic memory is set to 200."
PROOFS: CellOptions = {"lr": 0.001, "memory": 200}


def unless_set(scope: Scope, options: CellOptions) -> CellOptions:
    """Return options that hold for cells where neither the user nor a quick look has set others."""
    return options | {name: value for name, value in scope.options.items() if name in options}


def colour(arm: str) -> str:
    """Return the colour of an arm, as in every other figure."""
    from droptop.figures.style import DEBIASED, PLAIN

    return PLAIN if arm == "none" else DEBIASED


def band(
    ax: "Axes",
    places: Sequence[float],
    values: "Sequence[Sequence[float] | np.ndarray] | np.ndarray",
    colour: str,
    label: str,
    style: str = "-",
) -> None:
    """Draw mean and standard error of rows of values, one row per seed; nothing if there is no row."""
    rows = np.asarray(values, dtype=float)
    if rows.size == 0:
        return
    centre = rows.mean(0)
    ax.plot(places, centre, style, color=colour, label=label, linewidth=1.6)
    if len(rows) > 1:
        error = standard_error(rows)
        ax.fill_between(places, centre - error, centre + error, color=colour, alpha=0.2, linewidth=0)
