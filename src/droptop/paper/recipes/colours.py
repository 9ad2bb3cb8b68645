"""Figure 6 (appendix B): what a colour that tells digits apart in one task does to the other task (shortcut-mnist).

There are two tasks, digits 0 and 1, then 2 and 3; accuracy is followed while the second one is learned.
(a) Colours tell the digits apart in the first task and not in the second: is the second learned more slowly?
(b) Colours tell the digits apart in the second task and not in the first: is the first forgotten faster?
The paper compares both with plain digits. These differ from coloured ones in contrast too, so there is a second
control here: all digits in one colour, without a shortcut.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from droptop.paper.cell_results import CellResults, Series, difference, mean
from droptop.paper.claims import suffix
from droptop.paper.recipe import CellOptions, Grid, Recipe, Scope
from droptop.paper.recipes.shared import PROOFS, STATISTICS, band, colour, unless_set
from droptop.paper.tables import Column, Difference, Figure, Output, Table, Value
from droptop.results.metrics import accuracy

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

TASKS = ((0, 1), (2, 3))
SPLIT = "/".join(",".join(map(str, task)) for task in TASKS)
PLAIN = {"biased-mnist": "split-mnist", "fashion-colour": "fashion"}  # the same images without colours
REST = ",red" * 6  # of the classes that are left out
COLOURS = {"a": "red,lime,lime,lime" + REST, "b": "lime,lime,red,lime" + REST, "one": "lime,lime,lime,lime" + REST}
FOLLOWED = {"a": 1, "b": 0}  # the task whose accuracy is followed while the second one is learned
SHORTCUT_IN = {"a": 0, "b": 1}  # the task whose digits colours tell apart
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
FIGURES = {"a": (MEAN, LAST), "b": (MEAN, LOWEST, LAST)}  # (a) has no lowest one: its task starts at 0

Curve = dict[int, float]  # accuracy by steps of the second task


def options(scope: Scope) -> Grid:
    """Return the options of every cell."""
    return {"method": "er", "debias": "none", "split": SPLIT} | unless_set(scope, PROOFS | {"eval_every": 20})


def cell(scope: Scope, data: str, colouring: str) -> CellOptions:
    """Return the options of the cell with this colouring, or of plain images."""
    if colouring == "plain":
        return {"data": PLAIN[data]} | options(scope)
    return {"data": data, "correlation": 1.0, "colours": COLOURS[colouring]} | options(scope)


def study(scope: Scope) -> list[Grid]:
    """Return the study of plain images and of every colouring."""
    return [cell(scope, data, colouring) for data in scope.data for colouring in ("plain", *COLOURS)]


def curve(lines: list[dict[str, Any]], test: str, task: int) -> Curve:
    """Return the accuracy on the classes of a task at every evaluation while the second one is learned."""
    start = next(line["step"] for line in lines if line.get("task_end"))
    return {
        line["step"] - start: accuracy(line["eval"][test], TASKS[task])
        for line in lines
        if "eval" in line and line["step"] > start
    }


def curves(results: CellResults, data: str, colouring: str, task: int) -> dict[int, Curve]:
    """Return the curves by seed, measured on images coloured as in training."""
    options = cell(results.scope, data, colouring)
    return {
        seed: curve(results.metrics(options, seed), results.test_sets(options)[0], task)
        for seed in results.by_seed(options)
    }


def in_random_colours(results: CellResults, data: str, colouring: str, task: int) -> Series:
    """Return the accuracy on a task at its end on images in random colours: low where colours were learned."""
    options = cell(results.scope, data, colouring)
    ends = {
        seed: [line for line in results.metrics(options, seed) if line.get("task_end")]
        for seed in results.by_seed(options)
    }
    return {
        seed: accuracy(lines[task]["eval"]["random"], TASKS[task])
        for seed, lines in ends.items()
        if "random" in lines[task]["eval"]
    }


def summary(curve: Curve, figure: str) -> float:
    """Return the mean, the lowest or the last accuracy of a curve."""
    values = list(curve.values())
    return {MEAN: float(np.mean(values)), LOWEST: min(values), LAST: values[-1]}[figure]


def table(results: CellResults, data: str) -> Table:
    """Return the table of both experiments, each with its check in random colours."""
    rows: list[list[Value]] = []
    for name, task in FOLLOWED.items():
        by_colour = {colouring: curves(results, data, colouring, task) for colouring in ("plain", "one", name)}
        for number, figure in enumerate(FIGURES[name]):
            series: dict[str, Series] = {
                colouring: {seed: summary(curve, figure) for seed, curve in by_seed.items()}
                for colouring, by_seed in by_colour.items()
            }
            against = [difference(series[other], series[name]) for other in ("plain", "one")]
            title = TITLES[name] if number == 0 else ""
            means = [mean(values) for values in series.values()]
            rows.append([title, figure, *means, against[0].n, *against, verdict(against)])
        task = SHORTCUT_IN[name]
        one, shortcut = (in_random_colours(results, data, colouring, task) for colouring in ("one", name))
        check = f"check: task {task + 1} in random colours, at its own end"
        effect = difference(one, shortcut)
        rows.append(["", check, None, mean(one), mean(shortcut), len(shortcut), None, effect, ""])
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


def verdict(against: list[Difference]) -> str:
    """Return which of the two controls, plain and one-coloured images, the shortcut falls behind."""
    if any(effect.p is None for effect in against):
        return "cannot tell"
    plain, one_colour = (effect.significant and effect.diff is not None and effect.diff < 0 for effect in against)
    return "yes" if plain and one_colour else "than plain" if plain else "than one colour" if one_colour else "no"


def draw(results: CellResults, data: str) -> "Drawing":
    """Draw accuracy over the steps of the second task, one panel per experiment."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.3), layout="constrained")
    for ax, (name, task) in zip(axes, FOLLOWED.items()):
        for colouring, drawn, style in (
            ("plain", colour("none"), "-"),
            ("one", "#2e8b57", "--"),
            (name, "#c8102e", "-"),
        ):
            by_seed = curves(results, data, colouring, task)
            if not by_seed:
                continue
            steps = list(next(iter(by_seed.values())))
            values = [[curve[step] for step in steps] for curve in by_seed.values() if list(curve) == steps]
            band(ax, steps, values, drawn, LABELS[colouring], style)
        ax.set(title=TITLES[name], xlabel="steps of task 2")
        ax.legend(frameon=False, loc="lower right" if name == "a" else "lower left", fontsize=8)
    axes[0].set_ylabel("accuracy (%)")
    return figure


def show(results: CellResults) -> list[Output]:
    """Return a table and a figure per stream."""
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
        quick={"lr": 0.01, "memory": 200, "eval_every": 5, "limit": 1600},  # it learns faster
        stand_in=False,
        takes="15 min on 2 cores for 10 seeds with --set width=8,stem=3x3/2 (estimate)",
    ),
)
