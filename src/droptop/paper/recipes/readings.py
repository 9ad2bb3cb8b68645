"""Readings of the paper, to find out why a claim does not reproduce; this is not a table of the paper.

Every reading in which a reasonable person could choose otherwise is varied, one at a time, for both arms. The table
shows how far it moves accuracy, forgetting, and what DropTop changes.

All readings are varied for ER. For the other replay methods there are two: separate forward passes instead of a joint
one, and no augmentation, without which ER forgets as much as they do in the paper. The code that the paper follows for
MIR and GSS (Shim et al., 2021) also adds the mean losses of both passes, where ours is one mean over all rows: with as
many rows from each and plain SGD, that is twice the learning rate. For ASER it has one pass, and draws fewer samples
per class than ours, which is varied too.

Prompt learners have readings of their own, and a recipe, since they take the weights of a ViT.
"""

from functools import partial
from typing import TYPE_CHECKING

from droptop.paper import quoted
from droptop.paper.cell_results import CellResults, difference, mean, paired
from droptop.paper.claims import METHODS, place, set_name, shown_sets, stand_in_notes
from droptop.paper.recipe import CellOptions, Grid, Recipe, Scope
from droptop.paper.recipes.main_tables import PROMPTS, REPLAY
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
# Of ER: by name, options of both arms. Those of the debiasing layer change nothing in the arm without DropTop.
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
    "only stream samples masked": {"mask_rows": "stream"},
    "only memory samples masked": {"mask_rows": "memory"},
    "nothing dropped beyond kappa": {"remainder": "none"},
    "lr 0.01": {"lr": 0.01},
    "lr 0.03": {"lr": 0.03},
    "lr 0.05": {"lr": 0.05},
}
# Of the other replay methods, two of these, and what single methods have besides.
ADDED_LOSSES: dict[str, CellOptions] = {ADDED: READINGS[ADDED]}
OF_METHODS: dict[str, dict[str, CellOptions]] = {
    "mir": ADDED_LOSSES,
    "gss": ADDED_LOSSES,
    "aser": {"one candidate per class": {"sampling": "published"}},
}
PUBLISHED = "as published"
# Of the prompt learners: what the code that the paper follows does besides, together and one at a time, and what else
# the paper's sentence on their memories can mean.
OF_PROMPTS: dict[str, CellOptions] = {
    DEFAULT: {},
    PUBLISHED: {"preset": "as-published"},
    "pull of 1": {"pull": 1.0},
    "lr times batch / 256": {"lr_scale": "batch/256"},
    "Adam anew at each task": {"renew_optimizer": True},
    "prompts chosen per batch": {"batch_choice": True},
    "queries of augmented images": {"query_image": "augmented"},
    "memory by method": {"preset": "memory-by-method"},
}
QUICK = (DEFAULT, SEPARATE, "attention by running statistics", "rounding to the nearest", "lr 0.03")


def readings_of(scope: Scope, method: str) -> dict[str, CellOptions]:
    """Return the readings that are varied for a method."""
    if method in PROMPTS:
        return {name: OF_PROMPTS[name] for name in ((DEFAULT, PUBLISHED) if scope.quick else OF_PROMPTS)}
    replay = QUICK if scope.quick else tuple(READINGS)
    names = replay if method == "er" else (DEFAULT, SEPARATE, BARE)
    return {name: READINGS[name] for name in names} | OF_METHODS.get(method, {})


def rows_of(results: CellResults, data: str) -> dict[str, tuple[CellOptions, CellOptions]]:
    """Return by row the options of its cells and those of the default it is compared with, both without the arm.

    A reading that is the stream's default has no row.
    """
    scope, rows = results.scope, {}
    for method in scope.methods:
        base: CellOptions = {"data": data, "method": method}
        defaults = {scope.config(base | {"debias": arm}).fingerprint() for arm in ARMS}
        for name, cell in readings_of(scope, method).items():
            same = {scope.config(base | cell | {"debias": arm}).fingerprint() for arm in ARMS} == defaults
            if name == DEFAULT or not same:
                rows[name if len(scope.methods) == 1 else f"{METHODS[method]}, {name}"] = (base | cell, base)
    return rows


def study(scope: Scope) -> list[Grid]:
    """Return the study of every reading in both arms."""
    return [
        {"data": scope.data, "method": method, "debias": ARMS} | cell
        for method in scope.methods
        for cell in readings_of(scope, method).values()
    ]


def show(results: CellResults) -> list[Output]:
    """Return one table and one figure of all test sets."""
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
                        *(quotation(cell, test, figure) if cell == base else (None, None)),
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


def quotation(cell: CellOptions, test: str, figure: str) -> tuple[Mean | None, Mean | None]:
    """Return the paper's values of both arms, None where it has none."""
    where = place(cell["data"], test, figure)
    return quoted.figure(cell["method"], "none", where), quoted.figure(cell["method"], "droptop", where)


def measured(
    results: CellResults, cell: CellOptions, base: CellOptions, test: str, figure: str
) -> tuple[Mean, Mean, Difference, list[Difference | None]]:
    """Return both arms, what DropTop changes, and how far the reading moves each arm from the default.

    The latter is None where the arm is the same run with the reading and without.
    """
    plain, debiased = paired(*(results.series(cell | {"debias": arm}, test, figure) for arm in ARMS))
    moved: list[Difference | None] = []
    for arm, series in zip(ARMS, (plain, debiased)):
        default = base | {"debias": arm}
        same = results.run_folder(cell | {"debias": arm}) == results.run_folder(default)
        moved.append(None if same else difference(results.series(default, test, figure), series))
    return mean(plain), mean(debiased), difference(plain, debiased), moved


# -- The figure -------------------------------------------------------------------------------------------------------


def dots(results: CellResults) -> "Drawing":
    """Draw one block per test set, one line per reading: both arms, and beside them their difference."""
    import matplotlib.pyplot as plt

    every = {(data, test): rows_of(results, data) for data, test in shown_sets(results)}
    heights = [len(rows) + 1 for rows in every.values()]
    size = (11, 0.24 * sum(heights) + 0.9 * len(every) + 0.4)
    figure, axes = plt.subplots(len(every), 4, figsize=size, squeeze=False, height_ratios=heights, layout="constrained")
    for line, ((data, test), rows) in zip(axes, every.items()):
        for figure_name, (arms, gain) in zip(FIGURES, (line[:2], line[2:])):
            for y, (cell, base) in enumerate(rows.values()):
                plain, debiased, effect, _ = measured(results, cell, base, test, figure_name)
                draw_measured(arms, gain, y, (plain, debiased), effect)
                if not results.scope.quick:
                    draw_quotation(arms, gain, y, quotation(cell, test, figure_name))
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


def draw_measured(arms: "Axes", gain: "Axes", y: int, means: tuple[Mean, Mean], effect: Difference) -> None:
    """Draw two dots with standard errors, and a dot with its interval, filled where it excludes 0."""
    from droptop.figures.style import DEBIASED, PLAIN

    for arm, colour, label, offset in zip(means, (PLAIN, DEBIASED), ("none", "DropTop"), (-0.12, 0.12)):
        if arm.mean is not None:
            arms.errorbar(arm.mean, y + offset, xerr=arm.error or 0, fmt="o", color=colour, markersize=4, label=label)
    if effect.diff is not None:
        spread = None
        if effect.low is not None and effect.high is not None:
            spread = [[effect.diff - effect.low], [effect.high - effect.diff]]
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


def draw_quotation(arms: "Axes", gain: "Axes", y: int, figures: tuple[Mean | None, Mean | None]) -> None:
    """Draw the paper's values of the same method as dashed lines."""
    from droptop.figures.style import DEBIASED, PLAIN

    plain, debiased = figures
    for ax, value, colour, name in (
        (arms, plain, PLAIN, "none"),
        (arms, debiased, DEBIASED, "DropTop"),
        (gain, gap(plain, debiased), DEBIASED, "DropTop"),
    ):
        if value is not None and value.mean is not None:
            label = f"{name}: paper (quoted)"
            ax.vlines(value.mean, y - 0.5, y + 0.5, color=colour, linestyle="--", linewidth=1, label=label)


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
    Recipe(
        "readings-prompts",
        "Beyond the paper",
        "the same of prompt learners: what the code that the paper follows does besides",
        show,
        study,
        methods=PROMPTS,
        data=("split-cifar10", "split-tiny-imagenet9"),
        takes="25 min on an H200 for a ViT-tiny/8 (estimate)",
    ),
)
