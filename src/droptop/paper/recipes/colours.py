"""Figure 6 (appendix B): what a colour that tells digits apart in one task does to the other (shortcut-mnist).

Two tasks, 0 and 1, then 2 and 3, watched while the second is learned. (a) In the first task colours tell the digits
apart, in the second they do not: is the second learned more slowly? (b) In the first task colours say nothing, in the
second they tell: is the first forgotten faster? The paper holds both against plain digits. These differ from coloured
ones in contrast as well, so here stands one more: all digits in one colour, in which there is no shortcut.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from droptop.paper.cell_results import CellResults, Series, difference, mean
from droptop.paper.claims import suffix
from droptop.paper.recipe import CellOptions, Grid, Recipe, Scope
from droptop.paper.recipes.shared import STATISTICS, band, colour
from droptop.paper.tables import Column, Difference, Figure, Output, Table, Value
from droptop.results.metrics import accuracy

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

TASKS = ((0, 1), (2, 3))
SPLIT = "/".join(",".join(map(str, task)) for task in TASKS)
PLAIN = {"biased-mnist": "split-mnist", "fashion-colour": "fashion"}  # the same images without colours
REST = ",red" * 6  # of the classes that are left out
COLOURS = {"a": "red,lime,lime,lime" + REST, "b": "lime,lime,red,lime" + REST, "one": "lime,lime,lime,lime" + REST}
WATCHED = {"a": 1, "b": 0}  # the task whose accuracy is watched while the second one is learned
TOLD = {"a": 0, "b": 1}  # the task in which colours tell
TITLES = {"a": "(a) transfer: accuracy on task 2", "b": "(b) forgetting: accuracy on task 1"}
LABELS = {
    "plain": "plain",
    "one": "one colour",
    "a": "0 red, 1 green; 2 and 3 green",
    "b": "0 and 1 green; 2 red, 3 green",
}
MEANING = (
    "Percent. " + STATISTICS + " (a) Classes 0 red and 1 green, then 2 and 3 green; (b) 0 and 1 green, then 2 red and "
    "3 green; tested on images coloured in the same way. *Yes*: lower than both plain and one-coloured images, p < "
    "0.05; *than plain* or *than one colour*: than these alone. The check is low where colours were learned; all its "
    "images are coloured at random. The paper shows curves and gives no figures to quote."
)
MEAN, LOWEST, LAST = "mean while task 2 is learned", "lowest", "at its end"
FIGURES = {"a": (MEAN, LAST), "b": (MEAN, LOWEST, LAST)}  # what is being learned is lowest at 0

Curve = dict[int, float]  # accuracy by steps of the second task


def options(scope: Scope) -> Grid:
    """What holds for all of them: the paper's learning rate and memory; in a quick look, enough to learn something."""
    own = {"lr": 0.01, "eval_every": 5, "limit": 1600} if scope.quick else {"lr": 0.001, "eval_every": 20}
    return {"method": "er", "debias": "none", "memory": 200, "split": SPLIT} | own


def cell(scope: Scope, data: str, colouring: str) -> CellOptions:
    if colouring == "plain":
        return {"data": PLAIN[data]} | options(scope)
    return {"data": data, "correlation": 1.0, "colours": COLOURS[colouring]} | options(scope)


def study(scope: Scope) -> list[Grid]:
    return [cell(scope, data, colouring) for data in scope.data for colouring in ("plain", *COLOURS)]


def curve(lines: list[dict[str, Any]], test: str, task: int) -> Curve:
    """Accuracy on the classes of a task at every evaluation while the second one is learned."""
    start = next(line["step"] for line in lines if line.get("task_end"))
    return {
        line["step"] - start: accuracy(line["eval"][test], TASKS[task])
        for line in lines
        if "eval" in line and line["step"] > start
    }


def curves(results: CellResults, data: str, colouring: str, task: int) -> dict[int, Curve]:
    """By seed; measured on images coloured as in training."""
    own = cell(results.scope, data, colouring)
    return {seed: curve(results.lines(own, seed), results.tests(own)[0], task) for seed in results.of(own)}


def in_random_colours(results: CellResults, data: str, colouring: str, task: int) -> Series:
    """Accuracy on a task once it is learned, on images whose colours say nothing: low where colours were learned."""
    own = cell(results.scope, data, colouring)
    ends = {seed: [line for line in results.lines(own, seed) if line.get("task_end")] for seed in results.of(own)}
    return {
        seed: accuracy(lines[task]["eval"]["random"], TASKS[task])
        for seed, lines in ends.items()
        if "random" in lines[task]["eval"]
    }


def summed_up(curve: Curve, figure: str) -> float:
    values = list(curve.values())
    return {MEAN: float(np.mean(values)), LOWEST: min(values), LAST: values[-1]}[figure]


def table(results: CellResults, data: str) -> Table:
    rows: list[list[Value]] = []
    for name, task in WATCHED.items():
        by_colour = {colouring: curves(results, data, colouring, task) for colouring in ("plain", "one", name)}
        for number, figure in enumerate(FIGURES[name]):
            series: dict[str, Series] = {
                colouring: {seed: summed_up(own, figure) for seed, own in by_seed.items()}
                for colouring, by_seed in by_colour.items()
            }
            against = [difference(series[other], series[name]) for other in ("plain", "one")]
            rows.append(
                [
                    TITLES[name] if number == 0 else "",
                    figure,
                    *(mean(own) for own in series.values()),
                    against[0].n,
                    *against,
                    said(against),
                ]
            )
        one, shortcut = (in_random_colours(results, data, colouring, TOLD[name]) for colouring in ("one", name))
        rows.append(
            [
                "",
                f"check: task {TOLD[name] + 1} in random colours, at its own end",
                None,
                mean(one),
                mean(shortcut),
                len(shortcut),
                None,
                difference(one, shortcut),
                "",
            ]
        )
    columns = [
        Column("experiment", "label"),
        Column("accuracy", "label"),
        Column("plain"),
        Column("one colour"),
        Column("shortcut"),
        Column("n"),
        Column("shortcut - plain"),
        Column("shortcut - one colour"),
        Column("lower, as the paper says", "verdict"),
    ]
    return Table(
        f"A colour as a shortcut in one of two tasks, ER on {data}", columns, rows, [MEANING], suffix(results, data)
    )


def said(against: list[Difference]) -> str:
    """Which of the two controls the shortcut falls behind."""
    if any(one.p is None for one in against):
        return "cannot tell"
    plain, one_colour = (one.significant and one.diff is not None and one.diff < 0 for one in against)
    return "yes" if plain and one_colour else "than plain" if plain else "than one colour" if one_colour else "no"


def draw(results: CellResults, data: str) -> "Drawing":
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.3), layout="constrained")
    for ax, (name, task) in zip(axes, WATCHED.items()):
        for colouring, drawn, style in (
            ("plain", colour("none"), "-"),
            ("one", "#2e8b57", "--"),
            (name, "#c8102e", "-"),
        ):
            by_seed = curves(results, data, colouring, task)
            if not by_seed:
                continue
            steps = list(next(iter(by_seed.values())))
            values = [[own[step] for step in steps] for own in by_seed.values() if list(own) == steps]
            band(ax, steps, values, drawn, LABELS[colouring], style)
        ax.set(title=TITLES[name], xlabel="steps of task 2")
        ax.legend(frameon=False, loc="lower right" if name == "a" else "lower left", fontsize=8)
    axes[0].set_ylabel("accuracy (%)")
    return figure


def show(results: CellResults) -> list[Output]:
    outputs: list[Output] = []
    for data in results.scope.data:
        title = f"Accuracy while the second task is learned, ER on {data}: mean and standard error over seeds"
        outputs += [table(results, data), Figure(title, partial(draw, results, data), suffix=suffix(results, data))]
    return outputs


RECIPES = (
    Recipe(
        "shortcut-mnist",
        "Figure 6",
        "a colour that tells classes apart slows the next task down, or erases the last one",
        show,
        study,
        data=("biased-mnist",),
        quick_data=("fashion-colour",),
        stand_in=False,
        takes="15 min on 2 cores for 10 seeds with --set width=8,stem=3x3/2 (estimate)",
    ),
)
