"""Attention by rank against the truth: whether a model attends most to the shortcut (the paper's figure 2)."""

import numpy as np
from numpy.typing import NDArray

BINS = 20  # each has 5% of an image's cells: the highest is what the paper drops


def share_by_rank(
    attention_NHW: NDArray[np.floating], covered_NHW: NDArray[np.floating], bins: int = BINS
) -> NDArray[np.float64]:
    """Return for each bin the share of its cells that the shortcut covers, least attended cells first.

    `covered_NHW` is the share of each cell that the shortcut covers. Cells with the same attention rank by their place;
    a bin without cells, of a map with fewer cells than bins, is NaN.
    """
    attention, covered = (maps.reshape(len(maps), -1).astype(np.float64) for maps in (attention_NHW, covered_NHW))
    cells = attention.shape[1]
    order = attention.argsort(axis=1, kind="stable")
    ranked = np.take_along_axis(covered, order, axis=1).mean(0)
    members = [np.arange(cells) * bins // cells == number for number in range(bins)]
    return np.array([ranked[cells_of_bin].mean() if cells_of_bin.any() else np.nan for cells_of_bin in members])
