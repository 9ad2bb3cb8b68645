"""Figure 2: how much of what the model attends to most is the shortcut, on streams where the truth is known.

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
from droptop.paper.recipes.maps import cell, images_with_maps
from droptop.paper.recipes.shared import ARMS, STATISTICS, band, colour
from droptop.paper.tables import Column, Figure, Output, Table, Value
from droptop.runs.build import build_stream
from droptop.runs.config import Config
from droptop.runs.records import Maps, read_maps
from droptop.training.attention_recorder import in_turn

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

BLACK = 8  # brightest value of a removed background; files of the backgrounds challenge are JPEG
HIGH = 100 // BINS  # percent of the cells that count as attended to most: what the paper drops
TRUTH = 256  # images per seed
MEANING = (
    f"Percent of the {HIGH}% of cells attended to most that the shortcut covers, on test images of the classes seen by "
    "then, as training shows them; chance is its share of all cells. " + STATISTICS + " The paper's figure shows "
    "histograms and gives no figures to quote."
)


class Attended(NamedTuple):
    """Hold what one seed attends to over training."""

    images: int  # those with a map at every moment
    steps: list[int]
    ranks: np.ndarray  # moments x bins: percent of the cells' area that the shortcut covers, least attended first
    chance: np.ndarray  # moments: over all cells


def study(scope: Scope) -> list[Grid]:
    """Return the study of ER with and without DropTop, with maps of TRUTH images of every seed."""
    return [{"data": scope.data, "method": "er", "debias": list(ARMS), "maps": TRUTH, "maps_seeds": scope.seeds}]


def attended(config: Config, maps: Maps, tasks: list[list[int]], seed: int) -> Attended:
    """Return a seed's attention by rank against the truth, on images of the classes seen by each moment."""
    count = images_with_maps(maps)
    covered = (maps.shortcut if maps.shortcut is not None else background(config, maps, seed))[:count]
    ranks, chance = [], []
    for moment in maps.moments:
        seen = np.isin(maps.labels[:count], [label for task in tasks[: moment.task + 1] for label in task])
        ranks.append(100 * share_by_rank(moment.attention[:count][seen], covered[seen]))
        chance.append(100 * float(covered[seen].mean()))
    return Attended(count, [moment.step for moment in maps.moments], np.array(ranks), np.array(chance))


def background(config: Config, maps: Maps, seed: int) -> np.ndarray:
    """Return the share of each cell that is background (N, h, w), from the same images' foregrounds.

    Raise BadRequest if the stream has no foregrounds of these images.
    """
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


def cell_with_maps(results: CellResults, data: str, arm: str) -> CellOptions:
    """Return the options of ER's cell in one arm, as in the study."""
    return cell(data, arm) | {"maps": TRUTH, "maps_seeds": results.scope.seeds}


def attended_by_seed(results: CellResults, data: str, arm: str) -> dict[int, Attended]:
    """Return what the seeds of an arm attend to, without seeds that have no maps."""
    options = cell_with_maps(results, data, arm)
    config, run = results.scope.config(options), results.run_folder(options)
    recorded = {seed: (read_maps(run, seed), result["tasks"]) for seed, result in results.by_seed(options).items()}
    return {seed: attended(config, maps, tasks, seed) for seed, (maps, tasks) in recorded.items() if maps is not None}


def shortfalls(results: CellResults, data: str, arms: dict[str, dict[int, Attended]]) -> list[str]:
    """Return a note on the seeds that have no maps, or maps of fewer images; an empty list if there are none.

    How many maps a run records does not make it another run, so cells that another recipe ran are taken as they are.
    """
    parts = []
    for arm, name in ARMS.items():
        seeds = results.by_seed(cell_with_maps(results, data, arm))
        images_of = {seed: arms[arm][seed].images if seed in arms[arm] else 0 for seed in seeds}
        for images in sorted({count for count in images_of.values() if count < TRUTH}):
            few = ", ".join(str(seed) for seed, count in images_of.items() if count == images)
            parts.append(f"{name}: {f'maps of {images} images' if images else 'no maps'} of seed {few}")
    if not parts:
        return []
    return [
        f"**Not the {TRUTH} images of every seed that are asked for.** {'; '.join(parts)}. Cells that another "
        "recipe ran in this folder are not run again for their maps: a folder of its own has them all."
    ]


def table(results: CellResults, data: str, arms: dict[str, dict[int, Attended]]) -> Table:
    """Return the table of the cells attended to most, one row per moment; no rows where an arm has no maps."""

    def high(arm: str, moment: int) -> Series:
        return {seed: float(values.ranks[moment, -1]) for seed, values in arms[arm].items()}

    rows: list[list[Value]] = []
    steps = next(iter(arms["none"].values())).steps if all(arms.values()) else []
    for moment, step in enumerate(steps):
        plain, debiased = high("none", moment), high("droptop", moment)
        chance = {seed: float(values.chance[moment]) for seed, values in arms["none"].items()}
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
        [MEANING, *shortfalls(results, data, arms)],
        suffix(results, data),
    )


def draw(arms: dict[str, dict[int, Attended]]) -> "Drawing":
    """Draw three histograms, at the start, in the middle and at the end, and the highest bin over training."""
    import matplotlib.pyplot as plt

    first = next(iter(arms["none"].values()))
    moments = [0, len(first.steps) // 2, len(first.steps) - 1]
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.1), layout="constrained", width_ratios=(1, 1, 1, 1.25))
    for ax, moment in zip(axes, moments):
        for arm, seeds in arms.items():
            heights = np.mean([values.ranks[moment] for values in seeds.values()], axis=0)
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
        band(axes[3], first.steps, [values.ranks[:, -1] for values in seeds.values()], colour(arm), ARMS[arm])
    axes[3].plot(first.steps, first.chance, ":", color="black", label="chance", linewidth=1)
    axes[3].set(title=f"the {HIGH}% attended to most", xlabel="step", ylim=(0, None))
    axes[3].legend(frameon=False, fontsize=8)
    return figure


def show(results: CellResults) -> list[Output]:
    """Return one table per stream, and a figure where both arms have maps."""
    outputs: list[Output] = []
    for data in results.scope.data:
        arms = {arm: attended_by_seed(results, data, arm) for arm in ARMS}
        outputs.append(table(results, data, arms))
        if all(arms.values()):
            title = f"Cells on the shortcut by attention, {stream_name(data)}, mean over seeds"
            outputs.append(Figure(title, partial(draw, arms), suffix=suffix(results, data)))
    return outputs


RECIPES = (
    Recipe(
        "histogram",
        "Figure 2",
        "how much of what is attended to most is the shortcut, where the truth is known",
        show,
        study,
        data=("fashion-sticker", "fashion-background", "split-imagenet9"),
        quick_data=("fashion-sticker", "fashion-background"),
        takes="5 min on 2 cores for fashion-* (estimate)",
    ),
)
