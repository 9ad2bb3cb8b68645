"""Arms, notes and drawing that several recipes have in common."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from droptop.results.statistics import standard_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STATISTICS = (
    "Mean ± standard error over n seeds; differences are paired by seed, with 95% intervals and two-sided "
    "p-values, **bold** where p < 0.05."
)
ARMS = {"none": "ER", "droptop": "ER + DropTop"}


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
