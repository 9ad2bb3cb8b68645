"""What several recipes draw and say alike."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from droptop.paper.found import Found

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STATISTICS = ("Mean ± standard error over n seeds; differences are paired by seed, with 95% intervals and two-sided "
              "p-values, **bold** where p < 0.05.")
ARMS = {"none": "ER", "droptop": "ER + DropTop"}
COLOURS = {"none": "#5b6b82", "droptop": "#e0651b"}


def suffix(found: Found, data: str) -> str:
    """Of the files of a stream: none for the first, its name for others."""
    return "" if data == found.scope.data[0] else data.replace(":", "-").replace("/", "-")


def band(ax: "Axes", places: Sequence[float], values: "Sequence[Sequence[float] | np.ndarray] | np.ndarray",
         colour: str, label: str, style: str = "-") -> None:
    """Mean and standard error of rows of values, a row a seed."""
    rows = np.asarray(values, dtype=float)
    if rows.size == 0:
        return
    centre = rows.mean(0)
    ax.plot(places, centre, style, color=colour, label=label, linewidth=1.6)
    if len(rows) > 1:
        error = rows.std(0, ddof=1) / np.sqrt(len(rows))
        ax.fill_between(places, centre - error, centre + error, color=colour, alpha=0.2, linewidth=0)
