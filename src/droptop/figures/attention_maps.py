"""The figure of attention maps: sample images, and over them the attention of each arm and the cells it drops."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from droptop.runs.records import Maps


def attention_maps(arms: dict[str, Maps], title: str) -> Figure:
    """Draw sample images, and below each one every arm's attention and dropped cells at the end of training."""
    first = next(iter(arms.values()))
    count = len(first.images)
    figure, axes = plt.subplots(
        1 + len(arms),
        count,
        figsize=(1.15 * count + 0.5, 1.2 * (1 + len(arms)) + 0.6),
        layout="constrained",
        squeeze=False,
    )
    side, last = first.images.shape[1], [maps.moments[-1] for maps in arms.values()]
    for column, image in enumerate(first.images):
        axes[0][column].imshow(image)
        axes[0][column].set_title(first.names[column], fontsize=8)
        for row, moment in zip(axes[1:], last):
            row[column].imshow(image, alpha=0.5)
            row[column].imshow(moment.attention[column], cmap="magma", alpha=0.65, extent=(0, side, side, 0))
            if moment.dropped is not None:
                cell = side / moment.dropped.shape[1]
                for i, j in np.argwhere(moment.dropped[column]):
                    corner = (j * cell, i * cell)
                    square = Rectangle(corner, cell, cell, fill=False, edgecolor="cyan", linewidth=0.8)
                    row[column].add_patch(square)
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
        for spine in ax.spines.values():
            spine.set_visible(False)
    axes[0][0].set_ylabel("image")
    for row, arm in zip(axes[1:], arms):
        row[0].set_ylabel(arm)
    squares = "; squares: dropped cells" if any(moment.dropped is not None for moment in last) else ""
    figure.suptitle(f"{title}: attention at the end (bright: high{squares})", fontsize=9)
    return figure
