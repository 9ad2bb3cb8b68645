"""Why does a claim not reproduce? Every reading of the paper in which a reasonable person could choose otherwise is
varied, one at a time, for both arms: which of them moves accuracy, forgetting, and what DropTop changes?

Not a table of the paper's. ER; of the other replay methods joint against separate forward passes, and no augmentation,
without which ER forgets as much as they do in the paper. Of MIR and GSS the code that the paper follows (Shim et al.,
2021) also adds the mean losses of both passes, where ours is one mean over all rows: with as many of either and plain
SGD, that is twice the learning rate.
"""

from functools import partial
from typing import TYPE_CHECKING

from droptop.paper import quoted
from droptop.paper.cell_results import CellResults, difference, mean, paired
from droptop.paper.claims import METHODS, place, set_name, shown_sets, stand_in_notes
from droptop.paper.recipe import CellOptions, Grid, Recipe, Scope
from droptop.paper.recipes.main_tables import REPLAY
from droptop.paper.tables import ITALICS, Column, Difference, Figure, Mean, Output, Table, Value
from droptop.paper.verdict import gap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

ARMS, FIGURES = ("none", "droptop"), ("A_avg", "F_last")
DEFAULT, SEPARATE, ADDED, BARE = (
    "as it is",
    "separate forward passes",
    "separate forward passes, lr 0.2",
    "no augmentation",
)
# By name, options of both arms (the arm without DropTop has none of the layer's, and is then the default's own).
READINGS: dict[str, CellOptions] = {
    DEFAULT: {},
    SEPARATE: {"replay_forward": "separate"},
    ADDED: {"replay_forward": "separate", "lr": 0.2},
    "attention by running statistics": {"attention_norm": "running"},
    "stem 3x3": {"stem": "3x3"},
    "stem 3x3/2": {"stem": "3x3/2"},
    "stem 7x7/2": {"stem": "7x7/2"},
    "stem 7x7/2, pooled": {"stem": "7x7/2-pool"},
    "width 20": {"width": 20},
    BARE: {"augment": "none"},
    "crop and resize": {"augment": "crop-resize"},
    "probe of 64": {"probe": 64},
    "rounding to the nearest": {"rounding": "nearest"},
    "shift as in Algorithm 2": {"shift": "algorithm2"},
    "p counted from each task": {"p_counter": "task"},
    "lr 0.01": {"lr": 0.01},
    "lr 0.03": {"lr": 0.03},
    "lr 0.05": {"lr": 0.05},
}
QUICK = (DEFAULT, SEPARATE, "attention by running statistics", "rounding to the nearest", "lr 0.03")


def own_readings(scope: Scope, method: str) -> dict[str, CellOptions]:
    """What is varied of a method."""
    if method == "er":
        names = QUICK if scope.quick else tuple(READINGS)
    else:
        names = (DEFAULT, SEPARATE, *((ADDED,) if method in ("mir", "gss") else ()), BARE)
    return {name: READINGS[name] for name in names}


def rows_of(results: CellResults, data: str) -> dict[str, tuple[CellOptions, CellOptions]]:
    """Every row's cell, but for its arm, and that of the default it is held against; a reading that is a stream's
    default anyway has no row of its own."""
    scope, rows = results.scope, {}
    for method in scope.methods:
        base: CellOptions = {"data": data, "method": method}
        usual = {scope.config(base | {"debias": arm}).fingerprint() for arm in ARMS}
        for name, cell in own_readings(scope, method).items():
            same = {scope.config(base | cell | {"debias": arm}).fingerprint() for arm in ARMS} == usual
            if name == DEFAULT or not same:
                rows[name if len(scope.methods) == 1 else f"{METHODS[method]}, {name}"] = (base | cell, base)
    return rows


def study(scope: Scope) -> list[Grid]:
    return [
        {"data": scope.data, "method": method, "debias": ARMS} | cell
        for method in scope.methods
        for cell in own_readings(scope, method).values()
    ]


def show(results: CellResults) -> list[Output]:
    rows: list[list[Value]] = []
    for data, test in shown_sets(results):
        for number, (name, (cell, base)) in enumerate(rows_of(results, data).items()):
            for figure in FIGURES:
                plain, debiased, effect, moved = measured(results, cell, base, test, figure)
                rows.append(
                    [
                        set_name(data, test) if number == 0 and figure == FIGURES[0] else "",
                        name if figure == FIGURES[0] else "",
                        figure,
                        *(said(cell, test, figure) if cell == base else (None, None)),
                        plain,
                        debiased,
                        effect.n,
                        effect,
                        *moved,
                    ]
                )
    columns = (
        Column("stream, test set", "label"),
        Column("reading", "label"),
        Column("figure", "label"),
        Column("none: paper", "quoted"),
        Column("DropTop: paper", "quoted"),
        Column("none: here"),
        Column("DropTop: here"),
        Column("n"),
        Column("DropTop minus none: here"),
        Column("moves none by"),
        Column("moves DropTop by"),
    )
    notes = [
        "Percent, mean ± standard error over n seeds; differences are paired by seed, with 95% intervals and "
        "two-sided p-values, **bold** where p < 0.05 (in the CSV also corrected, p_holm). A reading moves an arm "
        "by its figure minus the same arm's with the defaults, and not at all where that arm has no such option.",
        ITALICS,
        *stand_in_notes(results.scope.data),
    ]
    who = f"{METHODS[results.scope.methods[0]]}: what" if len(results.scope.methods) == 1 else "What"
    quotes = "" if results.scope.quick else "; dashed: the paper's (quoted)"
    return [
        Table(f"{who} moves with each reading", columns, rows, notes),
        Figure(
            f"{who} moves with each reading: both arms (mean and standard error) and DropTop minus none (95% "
            f"interval){quotes}",
            partial(dots, results),
        ),
    ]


def said(cell: CellOptions, test: str, figure: str) -> tuple[Mean | None, Mean | None]:
    """Both arms as the paper has them."""
    where = place(cell["data"], test, figure)
    return quoted.figure(cell["method"], "none", where), quoted.figure(cell["method"], "droptop", where)


def measured(
    results: CellResults, cell: CellOptions, base: CellOptions, test: str, figure: str
) -> tuple[Mean, Mean, Difference, list[Difference | None]]:
    """Both arms, what DropTop changes, and by how much the reading moves each arm from the default: None where it is
    the same run."""
    plain, debiased = paired(*(results.series(cell | {"debias": arm}, test, figure) for arm in ARMS))
    moved: list[Difference | None] = []
    for arm, own in zip(ARMS, (plain, debiased)):
        same = results.run(cell | {"debias": arm}) == results.run(base | {"debias": arm})
        moved.append(None if same else difference(results.series(base | {"debias": arm}, test, figure), own))
    return mean(plain), mean(debiased), difference(plain, debiased), moved


# -- The figure -------------------------------------------------------------------------------------------------------


def dots(results: CellResults) -> "Drawing":
    """A block a test set, a line a reading; for each figure both arms, and beside them their difference."""
    import matplotlib.pyplot as plt

    every = {(data, test): rows_of(results, data) for data, test in shown_sets(results)}
    heights = [len(rows) + 1 for rows in every.values()]
    size = (11, 0.24 * sum(heights) + 0.9 * len(every) + 0.4)
    figure, axes = plt.subplots(len(every), 4, figsize=size, squeeze=False, height_ratios=heights, layout="constrained")
    for line, ((data, test), rows) in zip(axes, every.items()):
        for figure_name, (arms, gain) in zip(FIGURES, (line[:2], line[2:])):
            for y, (cell, base) in enumerate(rows.values()):
                plain, debiased, effect, _ = measured(results, cell, base, test, figure_name)
                mark(arms, gain, y, (plain, debiased), effect)
                if not results.scope.quick:
                    quote(arms, gain, y, said(cell, test, figure_name))
            arms.set_xlabel(f"{figure_name} (%)")
            gain.set_xlabel(f"{figure_name}: DropTop minus none")
            gain.axvline(0, color="black", linewidth=0.8)
        for ax in line:
            ax.set(ylim=(len(rows) - 0.4, -0.6), yticks=range(len(rows)), yticklabels=[])
            ax.tick_params(axis="y", length=0)
        line[0].set_yticklabels(list(rows), fontsize=7)
        line[0].set_title(set_name(data, test), loc="left")
    handles, labels = axes[0][0].get_legend_handles_labels()
    unique = dict(zip(labels, handles))
    figure.legend(unique.values(), unique.keys(), loc="outside upper right", ncols=4, frameon=False)
    return figure


def mark(arms: "Axes", gain: "Axes", y: int, means: tuple[Mean, Mean], effect: Difference) -> None:
    """One line: two dots with standard errors, and a dot with an interval, filled where it excludes 0."""
    from droptop.figures.style import DEBIASED, PLAIN

    for one, colour, label, offset in zip(means, (PLAIN, DEBIASED), ("none", "DropTop"), (-0.12, 0.12)):
        if one.mean is not None:
            arms.errorbar(one.mean, y + offset, xerr=one.error or 0, fmt="o", color=colour, markersize=4, label=label)
    if effect.diff is not None:
        spread = (
            None
            if effect.low is None or effect.high is None
            else [[effect.diff - effect.low], [effect.high - effect.diff]]
        )
        gain.errorbar(
            effect.diff,
            y,
            xerr=spread,
            fmt="o",
            color=DEBIASED,
            markersize=4,
            capsize=2,
            markerfacecolor=DEBIASED if effect.significant else "white",
        )


def quote(arms: "Axes", gain: "Axes", y: int, figures: tuple[Mean | None, Mean | None]) -> None:
    """The paper's figures of the same method, as dashed lines."""
    from droptop.figures.style import DEBIASED, PLAIN

    for ax, one, colour, name in zip(
        (arms, arms, gain), (*figures, gap(*figures)), (PLAIN, DEBIASED, DEBIASED), ("none", "DropTop", "DropTop")
    ):
        if one is not None and one.mean is not None:
            ax.vlines(
                one.mean, y - 0.5, y + 0.5, color=colour, linestyle="--", linewidth=1, label=f"{name}: paper (quoted)"
            )


RECIPES = (
    Recipe(
        "readings",
        "Beyond the paper",
        "readings of it varied one at a time for both arms: which of them matter?",
        show,
        study,
        methods=REPLAY,
        data=("split-cifar10", "split-tiny-imagenet9"),
        takes="45 min on an H200 (estimate)",
    ),
)
