"""Figure 7 (appendix D): how much depends on each hyperparameter, varied one at a time, ER and DER++.

The paper's figure has no numbers; the notes quote what it says in words. It does not name the stream either, but its
accuracies with the defaults are those of Split CIFAR-10.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from droptop.paper.cell_results import CellResults, difference, mean
from droptop.paper.claims import METHODS, file_name, set_name, shown_sets, stand_in_notes, suffix
from droptop.paper.recipe import CellOptions, Grid, Recipe, Scope
from droptop.paper.tables import Column, Figure, Output, Table, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

GAMMAS = (2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5)
# By symbol: the values, and the options that each stands for.
VARIED: dict[str, dict[float, CellOptions]] = {
    "kappa_0 (%)": {value: {"kappa_0": value} for value in (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)},
    "gamma (%)": {value: {"gamma": value, "kappa_0": min(5.0, value)} for value in GAMMAS},
    "alpha": {value: {"alpha": value} for value in (0.7, 0.75, 0.8, 0.85, 0.9, 0.95)},
    "p": {value: {"period": value} for value in (1, 2, 3, 4, 5)},
}
DEFAULTS = {"kappa_0 (%)": 5.0, "gamma (%)": 5.0, "alpha": 0.9, "p": 3}
QUOTED = (
    "The paper (appendix D, in words): accuracy is about the same for every kappa_0; it begins to drop beyond "
    "gamma = 7.5%, and at 17.5% nothing is left of the gain; it is as high for every alpha above 0.85, and "
    "for every p from 3."
)


def study(scope: Scope) -> list[Grid]:
    """Return the study of the arm without DropTop and of every value of every hyperparameter."""
    base = {"data": scope.data, "method": scope.methods}
    return [
        base | {"debias": "none"},
        *(base | {"debias": "droptop"} | cell for symbol in VARIED for cell in values_of(symbol, scope).values()),
    ]


def values_of(symbol: str, scope: Scope) -> dict[float, CellOptions]:
    """Return the values of a hyperparameter; in a quick look the lowest, the default and the highest."""
    cells = VARIED[symbol]
    quick_values = min(cells), DEFAULTS[symbol], max(cells)
    return {value: cells[value] for value in cells if not scope.quick or value in quick_values}


def show(results: CellResults) -> list[Output]:
    """Return one table, and a figure per test set."""
    rows: list[list[Value]] = []
    for data, test in shown_sets(results):
        for method in results.scope.methods:
            base: dict[str, Any] = {"data": data, "method": method}
            plain = results.series(base | {"debias": "none"}, test, "A_avg")
            rows.append(
                [f"{set_name(data, test)}, {METHODS[method]}", "none", None, mean(plain), len(plain), None, None]
            )
            for symbol, cells in VARIED.items():
                default = results.series(base | {"debias": "droptop"} | cells[DEFAULTS[symbol]], test, "A_avg")
                for value, cell in values_of(symbol, results.scope).items():
                    series = results.series(base | {"debias": "droptop"} | cell, test, "A_avg")
                    to_default = None
                    if value != DEFAULTS[symbol] and default:
                        to_default = difference(default, series)
                    figures = mean(series), len(series), difference(plain, series), to_default
                    rows.append(["", symbol, f"{value:g}", *figures])
    columns = (
        Column("test set, method", "label"),
        Column("varied", "label"),
        Column("value", "label"),
        Column("A_avg"),
        Column("n"),
        Column("to none"),
        Column("to the default"),
    )
    notes = [
        "Percent, mean ± standard error over n seeds; differences are paired by seed, with 95% intervals and "
        "two-sided p-values, **bold** where p < 0.05 (in the CSV also corrected, p_holm). With gamma, kappa_0 is "
        "min(5, gamma).",
        *([] if results.scope.quick else [QUOTED]),
        *stand_in_notes(results.scope.data),
    ]
    drawings = [
        Figure(
            f"Average accuracy on {set_name(data, test)} as one hyperparameter of DropTop varies (mean and "
            "standard error; dashed: the default; band: without DropTop)",
            partial(panels, results, data, test),
            suffix=set_suffix(results, data, test),
        )
        for data, test in shown_sets(results)
    ]
    return [Table("Sensitivity to DropTop's hyperparameters", columns, rows, notes), *drawings]


def set_suffix(results: CellResults, data: str, test: str) -> str:
    """Return the suffix of the files of a test set; for a stream's first test set it is that of the stream."""
    first = next(known for name, known in shown_sets(results) if name == data)
    return "-".join(filter(None, (suffix(results, data), "" if test == first else file_name(test))))


def panels(results: CellResults, data: str, test: str) -> "Drawing":
    """Draw one column per hyperparameter and one row per method."""
    import matplotlib.pyplot as plt

    methods = results.scope.methods
    figure, axes = plt.subplots(
        len(methods),
        len(VARIED),
        figsize=(2.5 * len(VARIED) + 0.6, 2.1 * len(methods) + 0.6),
        sharey="row",
        squeeze=False,
        layout="constrained",
    )
    for row, method in zip(axes, methods):
        for ax, symbol in zip(row, VARIED):
            panel(ax, results, {"data": data, "method": method}, test, symbol)
        row[0].set_ylabel(f"{METHODS[method]}: A_avg (%)")
    for ax, symbol in zip(axes[-1], VARIED):
        ax.set_xlabel(symbol)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper right", ncols=3, frameon=False)
    return figure


def panel(ax: "Axes", results: CellResults, base: CellOptions, test: str, symbol: str) -> None:
    """Draw accuracy over the values of one hyperparameter, the default, and the arm without DropTop."""
    from droptop.figures.style import DEBIASED, PLAIN

    plain = mean(results.series(base | {"debias": "none"}, test, "A_avg"))
    if plain.mean is not None:
        error = plain.error or 0
        ax.axhspan(plain.mean - error, plain.mean + error, color=PLAIN, alpha=0.3, linewidth=0)
        ax.axhline(plain.mean, color=PLAIN, linewidth=1, label="without DropTop")
    means = {
        value: mean(results.series(base | {"debias": "droptop"} | cell, test, "A_avg"))
        for value, cell in values_of(symbol, results.scope).items()
    }
    known = {value: accuracy for value, accuracy in means.items() if accuracy.mean is not None}
    ax.errorbar(
        np.array(list(known)),
        [accuracy.mean for accuracy in known.values()],  # type: ignore[arg-type]
        [accuracy.error or 0 for accuracy in known.values()],
        color=DEBIASED,
        marker="o",
        markersize=3.5,
        capsize=2,
        label="DropTop",
    )
    ax.axvline(DEFAULTS[symbol], color="black", linestyle="--", linewidth=0.8, alpha=0.4, label="default")


RECIPES = (
    Recipe(
        "sensitivity",
        "Figure 7",
        "kappa_0, gamma, alpha and p varied one at a time, ER and DER++",
        show,
        study,
        methods=("er", "derpp"),
        quick_data=("fashion",),
        quick={"history": 2},
        takes="25 min on an H200 (estimate)",
    ),
)
