"""Figures 4 and 8: where the model looks while it learns, with and without DropTop, from the maps that runs record.

A figure has the same images again and again: two rows per image, one per arm, and one column per moment.
"""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from droptop.paper.cell_results import CellResults
from droptop.paper.claims import stream_name, suffix
from droptop.paper.recipe import CellOptions, Grid, Recipe, Scope
from droptop.paper.recipes.shared import ARMS, colour
from droptop.paper.tables import Figure, Output
from droptop.runs.records import Maps, Moment, read_maps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

SHOWN = 4  # images per figure, those of the classes that arrive first
COLUMNS = 6  # moments per figure, at most
MEANING = (
    "Images of the first test set, of the classes that arrive first; the first seed. Bright: attended to most "
    "(Eq. 4). Squares: the cells that DropTop would drop, some of them at random where kappa is below gamma."
)


def cell(data: str, debias: str) -> CellOptions:
    """Return the options of ER's cell in one arm."""
    return {"data": data, "method": "er", "debias": debias}


def study(scope: Scope) -> list[Grid]:
    """Return the study of ER with and without DropTop."""
    return [{"data": scope.data, "method": "er", "debias": list(ARMS)}]


def evenly_spaced(moments: list[Moment], count: int = COLUMNS) -> list[int]:
    """Return the places of the first moment, the last one, and evenly spaced ones between, `count` in all."""
    return sorted({round(place) for place in np.linspace(0, len(moments) - 1, min(count, len(moments)))})


def recorded_maps(results: CellResults, data: str) -> dict[str, Maps]:
    """Return the first seed's maps by arm, without arms that have none."""
    seed = results.scope.options.get("first_seed", 0)
    cells = {arm: cell(data, arm) for arm in ARMS}
    finished = {arm: options for arm, options in cells.items() if seed in results.by_seed(options)}
    maps_by_arm = {arm: read_maps(results.run_folder(options), seed) for arm, options in finished.items()}
    return {arm: maps for arm, maps in maps_by_arm.items() if maps is not None}


def images_with_maps(maps: Maps) -> int:
    """Return how many images have a map at every moment.

    A seed that was resumed with another `maps` has fewer images at some moments; they are the first ones of the others.
    """
    return min(len(maps.labels), *(len(moment.attention) for moment in maps.moments))


def draw_maps(arms: dict[str, Maps]) -> "Drawing":
    """Draw the maps, one row per image and arm; brighter is more attended to, squares are what would be dropped."""
    import matplotlib.pyplot as plt

    first = next(iter(arms.values()))
    count = min(SHOWN, *(min(len(maps.images), images_with_maps(maps)) for maps in arms.values()))
    moments = evenly_spaced(first.moments)
    figure, axes = plt.subplots(
        count * len(arms),
        1 + len(moments),
        layout="constrained",
        squeeze=False,
        figsize=(1.15 * (1 + len(moments)) + 0.9, 1.12 * count * len(arms) + 0.4),
    )
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
        for spine in ax.spines.values():
            spine.set_visible(False)
    for number in range(count):
        for place, (arm, maps) in enumerate(arms.items()):
            row = axes[number * len(arms) + place]
            if place == 0:
                row[0].imshow(maps.images[number])
                row[0].set_title(maps.names[number], fontsize=8)
            row[1].set_ylabel(ARMS[arm], fontsize=7, color=colour(arm))
            for ax, moment in zip(row[1:], moments):
                overlay(ax, maps, maps.moments[moment], number)
    for ax, moment in zip(axes[0][1:], moments):
        ax.set_title(f"step {first.moments[moment].step}\n(task {first.moments[moment].task + 1})", fontsize=7)
    return figure


def overlay(ax: "Axes", maps: Maps, moment: Moment, number: int) -> None:
    """Draw one image at one moment under its attention."""
    from matplotlib.patches import Rectangle

    image, attention = maps.images[number], moment.attention[number].astype(float)
    side = image.shape[0]
    ax.imshow(image, alpha=0.6)
    ax.imshow(attention, cmap="magma", alpha=0.65, extent=(0, side, side, 0), interpolation="bilinear")
    if moment.dropped is not None:
        size = side / attention.shape[0]
        for i, j in np.argwhere(moment.dropped[number]):
            ax.add_patch(Rectangle((j * size, i * size), size, size, fill=False, edgecolor="cyan", linewidth=0.5))


def show(results: CellResults) -> list[Output]:
    """Return one figure per stream, if both arms have maps."""
    outputs: list[Output] = []
    for data in results.scope.data:
        if len(arms := recorded_maps(results, data)) == len(ARMS):
            title = f"Where ER looks on {stream_name(data)} with and without DropTop, over training"
            outputs.append(Figure(title, partial(draw_maps, arms), [MEANING], suffix(results, data)))
    return outputs


RECIPES = (
    Recipe(
        "maps",
        "Figures 4 and 8",
        "what ER attends to with and without DropTop, over training on the same images",
        show,
        study,
        data=("split-imagenet9",),
        quick={"limit": 1200, "memory": 300},
        takes="one run of each arm: --seeds 1 will do",
    ),
)
