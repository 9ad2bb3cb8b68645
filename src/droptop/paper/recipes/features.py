"""Section 3: which features of a trained learner are shortcuts by definitions 1 and 2, and do they do what Eq. 3 and
property 2 say?

The learner stops in the middle of its stream: its tasks are a `--split` that leaves classes out, which are then the
unseen data. A feature is a unit of the vector that the head sees, as in the paper (f: X -> R^d before g = w z). Its
definitions have two thresholds of which it gives no values, so they are varied over a range.
"""

import itertools
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from droptop.paper.cell_results import CellResults, Series, difference, mean
from droptop.paper.claims import stream_name, suffix
from droptop.paper.measurements import Measurements
from droptop.paper.recipe import CellOptions, Grid, Recipe, Scope
from droptop.paper.recipes.feature_definitions import FeatureStatistics, figures
from droptop.paper.recipes.feature_extraction import features_of, load_seed_with_stream
from droptop.paper.recipes.shared import ARMS, STATISTICS, band, colour
from droptop.paper.tables import Column, Figure, Output, Table, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

SPLIT = "0,1/2,3/4,5"  # the classes taught; all others are unseen
RHO, EPSILON = 1.0, 0.75  # of the table; in units of the mean feature's activation on seen data
TRIED = (0.5, 0.75, 1.0)  # of each threshold, in the second table
RANGE = tuple(np.arange(0.25, 1.51, 0.125).tolist())  # of the figure, one of the two at a time
NAMES = {
    "active": "features that are active on seen data, % of all",
    "shortcuts": "of these, shortcuts (definition 1), %",
    "times as active": "activation of shortcuts on seen data, % of that of non-shortcuts (Eq. 3: above 100)",
    "votes, shortcuts": "property 2: shortcuts that speak for the current task on images of earlier ones, %",
    "votes, others": "the same of non-shortcuts, %",
    "lead, shortcuts": "of a wrong class's lead on these images, from shortcuts, %",
    "lead, others": "from non-shortcuts, %",
    "mistaken": "images of earlier tasks taken for the current one's classes, %",
    "response, shortcuts": "of a shortcut feature's activation, gone with the true shortcut, %",
    "response, others": "of a non-shortcut feature's, %",
}
KINDS = {"shortcuts": "-", "others": "--"}
PANELS = {
    "shortcuts": "shortcuts among active features (%)",
    "times as active": "Eq. 3: activation,\nshortcuts / others",
    "votes": "property 2: speak for the\ncurrent task on earlier images (%)",
    "response": "activation gone with\nthe true shortcut (%)",
}
MEANING = (
    f"Learners after the tasks {SPLIT}, tested on images as training shows them; all other classes are unseen. A "
    "feature is a unit of the vector that the head sees; thresholds are in units of the mean feature's activation on "
    "seen data. "
    + STATISTICS
    + " By chance, features would speak for the current task a third of the time. The true shortcut can "
    "be taken away where the stream has test images with and without it. The paper measures none of this."
)


def cell(data: str, debias: str) -> CellOptions:
    return {"data": data, "method": "er", "debias": debias, "split": SPLIT}


def study(scope: Scope) -> list[Grid]:
    return [cell(data, arm) for data in scope.data for arm in ARMS]


def key(results: CellResults, own: CellOptions, seed: int) -> str:
    return f"{results.run(own).name} seed {seed}"


def measure(results: CellResults, notes: Measurements) -> None:
    """Portrays the features of every seed's last checkpoint."""
    for data in results.scope.data:
        for arm in ARMS:
            own = cell(data, arm)
            for seed in results.of(own):
                notes.once(key(results, own, seed), partial(measured_features, results, own, seed))


def measured_features(results: CellResults, own: CellOptions, seed: int) -> dict[str, Any]:
    stream, learner = load_seed_with_stream(results.scope.config(own), results.run(own), seed)
    values = asdict(features_of(learner, stream))
    return {name: kept(value) for name, value in values.items()}


def kept(value: Any) -> Any:
    """As JSON has it: six digits are plenty, and a feature that says nothing has none."""
    if not isinstance(value, np.ndarray):
        return value
    return [None if np.isnan(number) else float(f"{number:.6g}") for number in value]


def statistics_by_seed(results: CellResults, data: str, arm: str) -> dict[int, FeatureStatistics]:
    """By seed, as they were noted."""
    own = cell(data, arm)
    noted = {
        seed: results.notes[key(results, own, seed)]
        for seed in results.of(own)
        if key(results, own, seed) in results.notes
    }
    return {seed: read(values) for seed, values in noted.items()}


def read(noted: dict[str, Any]) -> FeatureStatistics:
    arrays: dict[str, Any] = {
        name: np.array(value, dtype=float) if isinstance(value, list) else value for name, value in noted.items()
    }
    return FeatureStatistics(**arrays)


def series(by_seed: dict[int, FeatureStatistics], figure: str, rho: float = RHO, epsilon: float = EPSILON) -> Series:
    values = {seed: figures(own, rho, epsilon).get(figure) for seed, own in by_seed.items()}
    scale = 100 if figure == "times as active" else 1
    return {seed: scale * value for seed, value in values.items() if value is not None}


def table(results: CellResults, data: str) -> Table:
    arms = {arm: statistics_by_seed(results, data, arm) for arm in ARMS}
    rows: list[list[Value]] = []
    for figure, name in NAMES.items():
        plain, debiased = (series(arms[arm], figure) for arm in ARMS)
        if plain or debiased:
            effect = difference(plain, debiased)
            rows.append([name, mean(plain), mean(debiased), effect, effect.n])
    columns = [
        Column(f"rho = {RHO:g}, epsilon = {EPSILON:g}", "label"),
        *(Column(name) for name in ARMS.values()),
        Column("DropTop - none"),
        Column("n"),
    ]
    return Table(f"Shortcut features of ER on {stream_name(data)}", columns, rows, [MEANING], suffix(results, data))


def thresholds(results: CellResults, data: str) -> Table:
    """Do shortcuts differ from non-shortcuts as Eq. 3 and property 2 say, whatever the thresholds?"""
    known = series(
        statistics_by_seed(results, data, "none"), "response, shortcuts"
    )  # can the true shortcut be taken away?
    panels = {"votes": "property 2: votes", **({"response": "true shortcut: response"} if known else {})}
    rows: list[list[Value]] = []
    for arm, name in ARMS.items():
        by_seed = statistics_by_seed(results, data, arm)
        for rho, epsilon in itertools.product(TRIED, TRIED):
            activation = series(by_seed, "times as active", rho, epsilon)
            gaps = [
                difference(
                    series(by_seed, f"{panel}, others", rho, epsilon),
                    series(by_seed, f"{panel}, shortcuts", rho, epsilon),
                )
                for panel in panels
            ]
            rows.append(
                [
                    name,
                    f"{rho:g}",
                    f"{epsilon:g}",
                    mean(series(by_seed, "shortcuts", rho, epsilon)),
                    difference(dict.fromkeys(activation, 100.0), activation),
                    *gaps,
                ]
            )
    columns = [
        Column("learner", "label"),
        Column("rho", "label"),
        Column("epsilon", "label"),
        Column("shortcuts, % of active"),
        Column("Eq. 3: activation, % above non-shortcuts"),
        *(Column(f"{what}, shortcuts - others") for what in panels.values()),
    ]
    return Table(
        f"Shortcuts against non-shortcuts of ER on {stream_name(data)}",
        columns,
        rows,
        ["The figures of the table above at other thresholds. " + STATISTICS],
        "-".join(filter(None, (suffix(results, data), "thresholds"))),
    )


def draw(results: CellResults, data: str) -> "Drawing":
    """Every panel over epsilon and, below, over rho; solid lines are of shortcuts, dashed ones of non-shortcuts."""
    import matplotlib.pyplot as plt

    arms = {arm: statistics_by_seed(results, data, arm) for arm in ARMS}
    there = [name for name in PANELS if name != "response" or series(arms["none"], "response, shortcuts")]
    figure, axes = plt.subplots(2, len(there), figsize=(3.1 * len(there), 5.4), layout="constrained", sharey="col")
    for row, (threshold, fixed) in zip(axes, (("epsilon", {"rho": RHO}), ("rho", {"epsilon": EPSILON}))):
        for ax, panel in zip(row, there):
            for arm, by_seed in arms.items():
                for kind, style in KINDS.items() if panel not in NAMES else ((None, "-"),):
                    name = panel if kind is None else f"{panel}, {kind}"
                    values = {at: series(by_seed, name, **fixed, **{threshold: at}) for at in RANGE}
                    line(ax, values, colour(arm), f"{ARMS[arm]}: {kind}", style)
            if panel == "times as active":
                ax.axhline(100, color="black", linewidth=0.8, alpha=0.6)
                ax.yaxis.set_major_formatter(lambda value, _: f"{value / 100:g}")
            [(name, value)] = fixed.items()
            ax.set_xlabel(f"{threshold} ({name} = {value:g})")
    for ax, panel in zip(axes[0], there):
        ax.set_title(PANELS[panel])
    axes[0][there.index("votes")].legend(frameon=False, fontsize=7)
    return figure


def line(ax: "Axes", values: dict[float, Series], colour: str, label: str, style: str) -> None:
    """A figure over a threshold, where every seed has it."""
    most = max(map(len, values.values()))
    places = [place for place, own in values.items() if most and len(own) == most]
    band(ax, places, np.array([list(values[place].values()) for place in places]).T, colour, label, style)


def show(results: CellResults) -> list[Output]:
    outputs: list[Output] = []
    for data in results.scope.data:
        if all(statistics_by_seed(results, data, arm) for arm in ARMS):
            title = f"Shortcut features of ER on {stream_name(data)} by thresholds: mean and standard error over seeds"
            outputs += [
                table(results, data),
                thresholds(results, data),
                Figure(title, partial(draw, results, data), suffix=suffix(results, data)),
            ]
    return outputs


RECIPES = (
    Recipe(
        "features",
        "Section 3",
        "which features are shortcuts (definitions 1, 2), how active (Eq. 3), how wrong (property 2)",
        show,
        study,
        measure,
        data=("fashion-sticker", "split-cifar10"),
        quick={"limit": 800, "memory": 200},
        takes="2 min on 2 cores for fashion-sticker (estimate)",
    ),
)
