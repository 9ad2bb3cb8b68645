"""Is it the shortcut that a model attends to most? Attention by rank, against the truth (the paper's figure 2)."""

import numpy as np
from numpy.typing import NDArray

BINS = 20  # of 5% of an image's cells each: the highest is what the paper drops


def share_by_rank(
    attention_NHW: NDArray[np.floating], covered_NHW: NDArray[np.floating], bins: int = BINS
) -> NDArray[np.float64]:
    """How much of its cells the shortcut covers, from the image's least attended cells to its most attended ones.

    `covered_NHW` is the share of each cell that the shortcut covers; where attention is the same, cells rank by place.
    """
    attention, covered = (maps.reshape(len(maps), -1).astype(np.float64) for maps in (attention_NHW, covered_NHW))
    cells = attention.shape[1]
    order = attention.argsort(axis=1, kind="stable")
    ranked = np.take_along_axis(covered, order, axis=1).mean(0)
    bin_of = np.arange(cells) * bins // cells
    return np.array([ranked[bin_of == number].mean() if (bin_of == number).any() else np.nan for number in range(bins)])
