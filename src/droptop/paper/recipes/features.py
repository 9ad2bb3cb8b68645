"""Section 3: features that are shortcuts by definitions 1 and 2, checked against Eq. 3 and property 2.

The learner stops in the middle of its stream: its tasks are a `--split` that leaves classes out, which are then the
unseen data. A feature is a unit of the vector that the head sees, as in the paper (f: X -> R^d before g = w z). The
paper's definitions have two thresholds without values, so both are varied over a range.
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
RHO, EPSILON = 1.0, 0.75  # of the first table; in units of the mean feature's activation on seen data
THRESHOLDS = (0.5, 0.75, 1.0)  # values of each, in the second table
RANGE = tuple(np.arange(0.25, 1.51, 0.125).tolist())  # values in the figure, one threshold varied at a time
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
    """Return the options of ER's cell in one arm."""
    return {"data": data, "method": "er", "debias": debias, "split": SPLIT}


def study(scope: Scope) -> list[Grid]:
    """Return the study of ER with and without DropTop."""
    return [cell(data, arm) for data in scope.data for arm in ARMS]


def key(results: CellResults, options: CellOptions, seed: int) -> str:
    """Return the name under which a seed's features are kept."""
    return f"{results.run_folder(options).name} seed {seed}"


def measure(results: CellResults, measurements: Measurements) -> None:
    """Measure the features of every seed's last checkpoint."""
    for data in results.scope.data:
        for arm in ARMS:
            options = cell(data, arm)
            for seed in results.by_seed(options):
                measurements.once(key(results, options, seed), partial(measured_features, results, options, seed))


def measured_features(results: CellResults, options: CellOptions, seed: int) -> dict[str, Any]:
    """Return the feature statistics of a seed's last checkpoint, as JSON holds them."""
    stream, learner = load_seed_with_stream(results.scope.config(options), results.run_folder(options), seed)
    values = asdict(features_of(learner, stream))
    return {name: to_json(value) for name, value in values.items()}


def to_json(value: Any) -> Any:
    """Return an array as a list of numbers with six digits, null for NaN; other values unchanged."""
    if not isinstance(value, np.ndarray):
        return value
    return [None if np.isnan(number) else float(f"{number:.6g}") for number in value]


def statistics_by_seed(results: CellResults, data: str, arm: str) -> dict[int, FeatureStatistics]:
    """Return the feature statistics of the seeds that were measured."""
    options = cell(data, arm)
    keys = {seed: key(results, options, seed) for seed in results.by_seed(options)}
    return {seed: from_json(results.measurements[name]) for seed, name in keys.items() if name in results.measurements}


def from_json(values: dict[str, Any]) -> FeatureStatistics:
    """Return the statistics that `measured_features` gave."""
    arrays: dict[str, Any] = {
        name: np.array(value, dtype=float) if isinstance(value, list) else value for name, value in values.items()
    }
    return FeatureStatistics(**arrays)


def series(by_seed: dict[int, FeatureStatistics], figure: str, rho: float = RHO, epsilon: float = EPSILON) -> Series:
    """Return one figure at two thresholds by seed, without seeds that have none; "times as active" in percent."""
    values = {seed: figures(statistics, rho, epsilon).get(figure) for seed, statistics in by_seed.items()}
    scale = 100 if figure == "times as active" else 1
    return {seed: scale * value for seed, value in values.items() if value is not None}


def table(results: CellResults, data: str) -> Table:
    """Return every figure of both arms at RHO and EPSILON."""
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
    """Return how shortcuts differ from non-shortcuts (Eq. 3 and property 2) at several thresholds."""
    responses = series(statistics_by_seed(results, data, "none"), "response, shortcuts")  # empty if not measured
    panels = {"votes": "property 2: votes", **({"response": "true shortcut: response"} if responses else {})}
    rows: list[list[Value]] = []
    for arm, name in ARMS.items():
        by_seed = statistics_by_seed(results, data, arm)
        for rho, epsilon in itertools.product(THRESHOLDS, THRESHOLDS):
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
    """Draw every panel over epsilon and, below, over rho; lines are solid for shortcuts, dashed for non-shortcuts."""
    import matplotlib.pyplot as plt

    arms = {arm: statistics_by_seed(results, data, arm) for arm in ARMS}
    panels = [name for name in PANELS if name != "response" or series(arms["none"], "response, shortcuts")]
    figure, axes = plt.subplots(2, len(panels), figsize=(3.1 * len(panels), 5.4), layout="constrained", sharey="col")
    for row, (threshold, fixed) in zip(axes, (("epsilon", {"rho": RHO}), ("rho", {"epsilon": EPSILON}))):
        for ax, panel in zip(row, panels):
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
    for ax, panel in zip(axes[0], panels):
        ax.set_title(PANELS[panel])
    axes[0][panels.index("votes")].legend(frameon=False, fontsize=7)
    return figure


def line(ax: "Axes", values: dict[float, Series], colour: str, label: str, style: str) -> None:
    """Draw a figure over a threshold, at the values where it exists for the most seeds."""
    most = max(map(len, values.values()))
    places = [place for place, series in values.items() if most and len(series) == most]
    band(ax, places, np.array([list(values[place].values()) for place in places]).T, colour, label, style)


def show(results: CellResults) -> list[Output]:
    """Return two tables and a figure per stream that has features of both arms."""
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
