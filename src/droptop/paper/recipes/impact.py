"""Table 4 (appendix B): what is learned from backgrounds alone and from foregrounds alone (shortcut-impact).

ER is trained on images without their object (OnlyBG: only_bg_t) and on objects without a background (OnlyFG), and
tested on images of its own kind and on the originals; the paper does not say which it tests on. Ordinary training is
`joint`: the same images in one pass, all classes shuffled together, so that the two differ in the order alone.
Both have appendix B's learning rate and memory, which are not those of the main tables.
"""

from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from droptop.paper import quoted
from droptop.paper.cell_results import CellResults, Series, difference, mean, relative
from droptop.paper.claims import same_sets, stand_in_notes, stream_name, suffix, unquoted_note
from droptop.paper.recipe import CellOptions, Grid, Recipe, Scope
from droptop.paper.recipes.shared import PROOFS, STATISTICS, unless_set
from droptop.paper.tables import ITALICS, VERDICT, Column, Difference, Figure, Output, Percent, Table, Value
from droptop.paper.verdict import gap, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Kind = Literal["only_bg", "only_fg"]
Tested = Literal["own", "original"]
NAMES: dict[Kind, str] = {"only_bg": "OnlyBG", "only_fg": "OnlyFG"}
COLOURS: dict[Kind, str] = {"only_bg": "#b8860b", "only_fg": "#2a6f97"}
TESTED: dict[Tested, str] = {"own": "tested on images of its own kind", "original": "tested on the original images"}
# A quick look has no images without an object: a background that tells the class stands for OnlyBG, and images
# without a background for OnlyFG.
BUILT_IN: dict[Kind, CellOptions] = {
    "only_bg": {"data": "fashion-background", "correlation": 1.0},
    "only_fg": {"data": "fashion"},
}
BUILT_IN_TESTS: dict[Kind, dict[Tested, str]] = {
    "only_bg": {"own": "biased", "original": "removed"},
    "only_fg": {"own": "clean", "original": "clean"},
}
OF_PAPER = (quoted.IMAGENET_9,)
IN_PAPER = ("A_1", "A_2", "A_3", "A_4", "A_avg", "F_last", "ordinary training")  # the columns of its table
MEANING = (
    "Percent. " + STATISTICS + " A_i is the accuracy over the classes seen after task i; ordinary training is one pass "
    "over the same images, all classes shuffled together. Gain is the paper's \"Rel. Improv.\", in percent of OnlyBG's "
    "figure."
)
QUOTED = (
    "The paper does not say whether it tests on images of the same kind or on the originals; its figures stand "
    "beside the former."
)
BUILT_IN_MEANS = (
    "Here OnlyBG is fashion-background, whose background always tells the class, and OnlyFG is fashion, "
    "which has none; their originals are plain images."
)


def cell(scope: Scope, data: str, kind: Kind, method: str = "er") -> CellOptions:
    """Return the options of a cell; ordinary training (`joint`) has one task with all classes and samples."""
    built_in = data == "fashion-background"
    images = BUILT_IN[kind] if built_in else {"data": f"{data}:{variant(kind)}"}
    options = {**images, "method": method, "debias": "none"} | unless_set(scope, PROOFS)
    if method == "joint":
        tasks = 5 if built_in else 4
        if split := scope.options.get("split"):
            tasks, options["split"] = len(split.split("/")), split.replace("/", ",")
        if "limit" in scope.options:
            options["limit"] = scope.options["limit"] * tasks
    return options


def variant(kind: Kind) -> str:
    """Return the name of the images that are trained on, which is also that of their test set."""
    return {"only_bg": "only_bg_t", "only_fg": "only_fg"}[kind]


def test_of(data: str, kind: Kind, tested: Tested) -> str:
    """Return the test set of a stream."""
    if data == "fashion-background":
        return BUILT_IN_TESTS[kind][tested]
    return variant(kind) if tested == "own" else "original"


def study(scope: Scope) -> list[Grid]:
    """Return the study of ER and ordinary training on either kind of images."""
    return [cell(scope, data, kind, method) for data in scope.data for kind in NAMES for method in ("er", "joint")]


def series(results: CellResults, data: str, kind: Kind, tested: Tested) -> dict[str, Series]:
    """Return every figure by seed: accuracy after each task, A_avg, F_last, and the accuracy of ordinary training."""
    options, test = cell(results.scope, data, kind), test_of(data, kind, tested)
    by_seed = results.by_seed(options).items()
    curves = {seed: result["tests"][test]["A"] for seed, result in by_seed if test in result["tests"]}
    after = {
        f"A_{task + 1}": {seed: curve[task] for seed, curve in curves.items()}
        for task in range(max(map(len, curves.values()), default=0))
    }
    return {
        **after,
        "A_avg": results.series(options, test, "A_avg"),
        "F_last": results.series(options, test, "F_last"),
        "ordinary training": results.series(cell(results.scope, data, kind, "joint"), test, "A_last"),
    }


def table(results: CellResults, data: str) -> Table:
    """Return the table of both kinds of images, tested on their own kind and on the originals."""
    rows: list[list[Value]] = []
    quotes = of_paper(data)
    for tested, title in TESTED.items():
        background, foreground = (series(results, data, kind, tested) for kind in NAMES)
        for number, figure in enumerate(background):
            old, new = background[figure], foreground.get(figure, {})
            effect = difference(old, new)
            *quotation, verdict = paper(figure, effect) if quotes and tested == "own" else [None, None, None, ""]
            rows.append(
                [
                    title if number == 0 else "",
                    figure,
                    *quotation,
                    mean(old),
                    mean(new),
                    effect.n,
                    effect,
                    Percent(relative(old, new, figure)),
                    verdict,
                ]
            )
    columns = [
        Column("ER", "label"),
        Column("figure", "label"),
        Column("OnlyBG: paper", "quoted"),
        Column("OnlyFG: paper", "quoted"),
        Column("gain: paper", "quoted"),
        Column("OnlyBG: here"),
        Column("OnlyFG: here"),
        Column("n"),
        Column("OnlyFG - OnlyBG"),
        Column("gain: here"),
        Column("verdict", "verdict"),
    ]
    notes = [MEANING, *([BUILT_IN_MEANS] if data == "fashion-background" else [])]
    if quotes:
        notes += [ITALICS, VERDICT, QUOTED, *stand_in_notes([data])]
    else:
        notes.append(unquoted_note([(data, "original")], OF_PAPER))
    return Table(
        f"Trained on backgrounds alone and on foregrounds alone, {stream_name(data)}",
        columns,
        rows,
        notes,
        suffix(results, data),
    )


def of_paper(data: str) -> bool:
    """Return whether the paper's figures are of this stream, or of the one it stands in for."""
    return same_sets([(data, "original")], OF_PAPER)


def paper(figure: str, effect: Difference) -> list[Value]:
    """Return the paper's two values of a figure and their gain, and the verdict on ours; empty where it has none."""
    if figure not in IN_PAPER:
        return [None, None, None, ""]
    place = IN_PAPER.index(figure)
    before, after = (quoted.IMPACT[kind][place] for kind in NAMES)
    gained = gap(before, after)
    assert gained is not None
    return [before, after, Percent(quoted.IMPACT_RELATIVE[place]), judge(gained, effect)]


def draw(results: CellResults, data: str) -> "Drawing":
    """Draw accuracy after each task of both kinds of images, one panel per kind of test set."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
    for ax, (tested, title) in zip(axes, TESTED.items()):
        for kind, name in NAMES.items():
            figures = series(results, data, kind, tested)
            points = [
                mean(values) for figure, values in figures.items() if figure.startswith("A_") and figure != "A_avg"
            ]
            tasks = np.arange(1, len(points) + 1)
            ax.errorbar(
                tasks,
                [point.mean for point in points],
                [point.error or 0 for point in points],
                color=COLOURS[kind],
                marker="o",
                markersize=4,
                capsize=2,
                label=f"{name}, here",
            )
            if tested == "own" and of_paper(data) and not results.scope.quick:
                quotation = quoted.IMPACT[kind][:4]
                ax.plot(
                    range(1, 5),
                    [value.mean for value in quotation],
                    ":",
                    color=COLOURS[kind],
                    marker="x",
                    markersize=4,
                    label=f"{name}, paper (quoted)",
                )
            if (ordinary := mean(figures["ordinary training"])).mean is not None:
                ax.axhline(
                    ordinary.mean,
                    color=COLOURS[kind],
                    alpha=0.5,
                    linestyle="--",
                    linewidth=1,
                    label=f"{name}, ordinary training",
                )
            if len(tasks):
                ax.set_xticks(tasks)
        ax.set(title=title, xlabel="after task", ylim=(0, None))
    axes[0].set_ylabel("accuracy over classes seen (%)")
    axes[0].legend(frameon=False, fontsize=7)
    return figure


def show(results: CellResults) -> list[Output]:
    """Return a table and a figure per stream."""
    outputs: list[Output] = []
    for data in results.scope.data:
        title = f"ER on {stream_name(data)} after each task: mean and standard error over seeds"
        outputs += [table(results, data), Figure(title, partial(draw, results, data), suffix=suffix(results, data))]
    return outputs


RECIPES = (
    Recipe(
        "shortcut-impact",
        "Table 4",
        "ER trained on backgrounds alone against foregrounds alone, and ordinary training on each",
        show,
        study,
        data=("split-imagenet9",),
        quick_data=("fashion-background",),
        quick={"limit": 512, "lr": 0.05},
        takes="7 min on 2 cores for Tiny-ImageNet-9 with --set width=8 (estimate)",
    ),
)
