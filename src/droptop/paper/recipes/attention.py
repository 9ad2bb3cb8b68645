"""Where the model looks while it learns, with and without DropTop, from the maps that runs record.

    maps        figures 4 and 8: the same images again and again, a row an arm, a column a moment
    histogram   figure 2: how much of what is attended to most is the shortcut, where the truth is known

The truth is the stream's own (stickers, textures) or, for ImageNet-9 and its like, the background: what is black in the
test set of foregrounds. Only images of classes that were seen by then count.
"""

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from droptop.errors import BadRequest
from droptop.paper.cell_results import CellResults, Series, difference, mean
from droptop.paper.claims import stream_name, suffix
from droptop.paper.recipe import CellOptions, Grid, Recipe, Scope
from droptop.paper.recipes.attention_ranks import BINS, share_by_rank
from droptop.paper.recipes.shared import ARMS, STATISTICS, band, colour
from droptop.paper.tables import Column, Figure, Output, Table, Value
from droptop.runs.build import build_stream
from droptop.runs.config import Config
from droptop.runs.records import Maps, Moment, read_maps
from droptop.training.attention_recorder import in_turn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

SHOWN = 4  # images of a figure of maps, those of the classes that arrive first
COLUMNS = 6  # moments, at most
BLACK = 8  # brightest value of a removed background; files of the backgrounds challenge are JPEG
HIGH = 100 // BINS  # percent of the cells that count as attended to most: what the paper drops
TRUTH = 256  # images of a histogram
MAPS_MEAN = (
    "Images of the first test set, of the classes that arrive first; the first seed. Bright: attended to most "
    "(Eq. 4). Squares: the cells that DropTop would drop, some of them at random where kappa is below gamma."
)
HISTOGRAM_MEANS = (
    f"Percent of the {HIGH}% of cells attended to most that the shortcut covers, on test images of the classes seen by "
    "then, as training shows them; chance is its share of all cells. " + STATISTICS + " The paper's figure shows "
    "histograms and gives no figures to quote."
)


def cell(data: str, debias: str) -> CellOptions:
    return {"data": data, "method": "er", "debias": debias}


# -- Figures 4 and 8 --------------------------------------------------------------------------------------------------


def maps_study(scope: Scope) -> list[Grid]:
    return [{"data": scope.data, "method": "er", "debias": list(ARMS)}]


def chosen(moments: list[Moment], count: int = COLUMNS) -> list[int]:
    """The first, the last, and as many evenly spaced ones between as fit."""
    return sorted({round(place) for place in np.linspace(0, len(moments) - 1, min(count, len(moments)))})


def recorded(results: CellResults, data: str) -> dict[str, Maps]:
    """Of the first seed, by arm; none where an arm is not done."""
    seed = results.scope.options.get("first_seed", 0)
    arms = {arm: read_maps(results.run(cell(data, arm)), seed) for arm in ARMS if seed in results.of(cell(data, arm))}
    return {arm: maps for arm, maps in arms.items() if maps is not None}


def mapped(maps: Maps) -> int:
    """Images that every moment has a map of: a seed that went on with another `maps` has some of fewer, and these are
    the first of the others."""
    return min(len(maps.labels), *(len(moment.attention) for moment in maps.moments))


def draw_maps(arms: dict[str, Maps]) -> "Drawing":
    """For every image a row an arm; brighter is more attended to, squares are what would be dropped."""
    import matplotlib.pyplot as plt

    first = next(iter(arms.values()))
    count, moments = min(SHOWN, *(min(len(maps.images), mapped(maps)) for maps in arms.values())), chosen(first.moments)
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
    from matplotlib.patches import Rectangle

    image, attention = maps.images[number], moment.attention[number].astype(float)
    side = image.shape[0]
    ax.imshow(image, alpha=0.6)
    ax.imshow(attention, cmap="magma", alpha=0.65, extent=(0, side, side, 0), interpolation="bilinear")
    if moment.dropped is not None:
        size = side / attention.shape[0]
        for i, j in np.argwhere(moment.dropped[number]):
            ax.add_patch(Rectangle((j * size, i * size), size, size, fill=False, edgecolor="cyan", linewidth=0.5))


def show_maps(results: CellResults) -> list[Output]:
    outputs: list[Output] = []
    for data in results.scope.data:
        if len(arms := recorded(results, data)) == len(ARMS):
            title = f"Where ER looks on {stream_name(data)} with and without DropTop, over training"
            outputs.append(Figure(title, partial(draw_maps, arms), [MAPS_MEAN], suffix(results, data)))
    return outputs


# -- Figure 2 ---------------------------------------------------------------------------------------------------------


class Attended(NamedTuple):
    """What one seed attends to over training."""

    images: int  # that every moment has a map of
    steps: list[int]
    ranks: np.ndarray  # moments x bins: percent of the cells' area that the shortcut covers, least attended first
    chance: np.ndarray  # moments: over all cells


def histogram_study(scope: Scope) -> list[Grid]:
    return [{"data": scope.data, "method": "er", "debias": list(ARMS), "maps": TRUTH, "maps_seeds": scope.seeds}]


def attended(config: Config, maps: Maps, tasks: list[list[int]], seed: int) -> Attended:
    """Attention by rank against the truth, on images of classes seen by each moment."""
    count = mapped(maps)
    covered = (maps.shortcut if maps.shortcut is not None else background(config, maps, seed))[:count]
    ranks, chance = [], []
    for moment in maps.moments:
        seen = np.isin(maps.labels[:count], [label for task in tasks[: moment.task + 1] for label in task])
        ranks.append(100 * share_by_rank(moment.attention[:count][seen], covered[seen]))
        chance.append(100 * float(covered[seen].mean()))
    return Attended(count, [moment.step for moment in maps.moments], np.array(ranks), np.array(chance))


def background(config: Config, maps: Maps, seed: int) -> np.ndarray:
    """N, h, w: the share of each cell that is background, from the same images' foregrounds."""
    import torch
    import torch.nn.functional as F

    stream = build_stream(config, seed)
    if "only_fg" not in stream.tests:
        raise BadRequest(
            f"nobody knows where the shortcut of {config.options.data} is: choose --data fashion-sticker, "
            "fashion-background, or images with masks"
        )
    test = stream.tests["only_fg"]
    rows = in_turn(test, [label for task in stream.tasks for label in task], len(maps.labels))
    samples = test[rows]
    if not torch.equal(samples.y, torch.from_numpy(maps.labels)):
        raise BadRequest(f"{config.options.data}: the images of foregrounds are not those of the originals")
    dark = (samples.x.amax(1) <= BLACK).float()
    return F.adaptive_avg_pool2d(dark[:, None], tuple(maps.moments[0].attention.shape[1:]))[:, 0].numpy()


def histogram_cell(results: CellResults, data: str, arm: str) -> CellOptions:
    return cell(data, arm) | {"maps": TRUTH, "maps_seeds": results.scope.seeds}


def by_seed(results: CellResults, data: str, arm: str) -> dict[int, Attended]:
    own = histogram_cell(results, data, arm)
    config, run = results.scope.config(own), results.run(own)
    maps = {seed: (read_maps(run, seed), result["tasks"]) for seed, result in results.of(own).items()}
    return {seed: attended(config, one, tasks, seed) for seed, (one, tasks) in maps.items() if one is not None}


def shortfalls(results: CellResults, data: str, arms: dict[str, dict[int, Attended]]) -> list[str]:
    """Which seeds have no maps, or maps of fewer images: how many are recorded makes no other run, so that cells which
    another recipe ran in this folder are taken as they are."""
    notes = []
    for arm, name in ARMS.items():
        own = {
            seed: arms[arm][seed].images if seed in arms[arm] else 0
            for seed in results.of(histogram_cell(results, data, arm))
        }
        for images in sorted({count for count in own.values() if count < TRUTH}):
            seeds = ", ".join(str(seed) for seed, count in own.items() if count == images)
            notes.append(f"{name}: {f'maps of {images} images' if images else 'no maps'} of seed {seeds}")
    return (
        [
            f"**Not the {TRUTH} images of every seed that are asked for.** {'; '.join(notes)}. Cells that another "
            "recipe ran in this folder are not run again for their maps: a folder of its own has them all."
        ]
        if notes
        else []
    )


def histogram_table(results: CellResults, data: str, arms: dict[str, dict[int, Attended]]) -> Table:
    def high(arm: str, moment: int) -> Series:
        return {seed: float(own.ranks[moment, -1]) for seed, own in arms[arm].items()}

    rows: list[list[Value]] = []
    steps = next(iter(arms["none"].values())).steps if all(arms.values()) else []
    for moment, step in enumerate(steps):
        plain, debiased = high("none", moment), high("droptop", moment)
        chance = {seed: float(own.chance[moment]) for seed, own in arms["none"].items()}
        rows.append(
            [
                str(step),
                mean(chance),
                mean(plain),
                difference(chance, plain),
                mean(debiased),
                difference(plain, debiased),
                len(plain),
            ]
        )
    columns = [
        Column("step", "label"),
        Column("chance"),
        Column("ER"),
        Column("ER - chance"),
        Column("ER + DropTop"),
        Column("DropTop - none"),
        Column("n"),
    ]
    return Table(
        f"How much of what is attended to most is the shortcut, {stream_name(data)}",
        columns,
        rows,
        [HISTOGRAM_MEANS, *shortfalls(results, data, arms)],
        suffix(results, data),
    )


def draw_histogram(arms: dict[str, dict[int, Attended]]) -> "Drawing":
    import matplotlib.pyplot as plt

    first = next(iter(arms["none"].values()))
    moments = [0, len(first.steps) // 2, len(first.steps) - 1]
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.1), layout="constrained", width_ratios=(1, 1, 1, 1.25))
    for ax, moment in zip(axes, moments):
        for arm, seeds in arms.items():
            heights = np.mean([own.ranks[moment] for own in seeds.values()], axis=0)
            ax.stairs(
                heights,
                np.linspace(0, 100, BINS + 1),
                color=colour(arm),
                linewidth=1.5,
                label=ARMS[arm],
                fill=arm == "none",
                alpha=0.35 if arm == "none" else 1,
            )
        ax.axhline(first.chance[moment], color="black", linestyle=":", linewidth=1, label="chance")
        ax.set(title=f"step {first.steps[moment]}", xlabel="attention: least to most (% of cells)", xlim=(0, 100))
    highest = max(ax.get_ylim()[1] for ax in axes[:3])
    for ax in axes[:3]:
        ax.set_ylim(0, highest)
    axes[0].set_ylabel("cells on the shortcut (%)")
    for arm, seeds in arms.items():
        band(axes[3], first.steps, [own.ranks[:, -1] for own in seeds.values()], colour(arm), ARMS[arm])
    axes[3].plot(first.steps, first.chance, ":", color="black", label="chance", linewidth=1)
    axes[3].set(title=f"the {HIGH}% attended to most", xlabel="step", ylim=(0, None))
    axes[3].legend(frameon=False, fontsize=8)
    return figure


def show_histogram(results: CellResults) -> list[Output]:
    outputs: list[Output] = []
    for data in results.scope.data:
        arms = {arm: by_seed(results, data, arm) for arm in ARMS}
        outputs.append(histogram_table(results, data, arms))
        if all(arms.values()):
            outputs.append(
                Figure(
                    f"Cells on the shortcut by attention, {stream_name(data)}, mean over seeds",
                    partial(draw_histogram, arms),
                    suffix=suffix(results, data),
                )
            )
    return outputs


RECIPES = (
    Recipe(
        "maps",
        "Figures 4 and 8",
        "what ER attends to with and without DropTop, over training on the same images",
        show_maps,
        maps_study,
        data=("split-imagenet9",),
        quick={"limit": 1200, "memory": 300},
        takes="one run of each arm: --seeds 1 will do",
    ),
    Recipe(
        "histogram",
        "Figure 2",
        "how much of what is attended to most is the shortcut, where the truth is known",
        show_histogram,
        histogram_study,
        data=("fashion-sticker", "fashion-background", "split-imagenet9"),
        quick_data=("fashion-sticker", "fashion-background"),
        takes="5 min on 2 cores for fashion-* (estimate)",
    ),
)
