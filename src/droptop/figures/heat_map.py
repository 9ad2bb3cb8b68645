"""The heat map of a study of cues: what each cue costs each arm, and what each debiaser gives back."""

from collections.abc import Callable, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from droptop.figures.style import DEBIASED
from droptop.results.statistics import Effect, verdict
from droptop.results.stress import FIGURE, Stressed

WORSE, SAME, BETTER = "#2d62b5", "#f5f3ef", DEBIASED
COLOURS = LinearSegmentedColormap.from_list("effects", [WORSE, SAME, BETTER])
COST = "a cue costs: biased minus random"
PANELS: dict[str, Callable[[Stressed], Effect | None]] = {
    COST: lambda row: row.cost,
    "debiasing gives back, on random": lambda row: row.given_back,
    "debiasing changes, on biased": lambda row: row.on_biased,
}


def heat_map(rows: Sequence[Stressed], title: str) -> Figure:
    """Draw points of A_avg as a grid, a row per cue and a column per arm, with 95% intervals; bold: significant."""
    cues, arms = (list(dict.fromkeys(names)) for names in ((row.cue for row in rows), (row.debias for row in rows)))
    shown = {
        name: columns
        for name, of in PANELS.items()
        if (columns := [arm for arm in arms if any(of(row) for row in rows if row.debias == arm)])
    }
    numbers = [effect["diff"] for of in PANELS.values() for row in rows if (effect := of(row)) is not None]
    limit = max((abs(number) for number in numbers if number is not None), default=1.0) or 1.0
    widths = [len(columns) for columns in shown.values()]
    size = (1.1 * sum(widths) + 0.9 * len(shown) + 1.4, 0.5 * len(cues) + 1.3)
    figure, axes = plt.subplots(1, len(shown), width_ratios=widths, squeeze=False, layout="constrained", figsize=size)
    for ax, (name, columns) in zip(axes[0], shown.items()):
        for row in rows:
            effect = PANELS[name](row)
            if effect is not None and effect["diff"] is not None and row.debias in columns:
                draw_cell(ax, columns.index(row.debias), cues.index(row.cue), effect, limit, cost=name == COST)
        ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(cues) - 0.5, -0.5))
        ax.set_xticks(range(len(columns)), columns)
        ax.set_yticks(range(len(cues)), cues if ax is axes[0][0] else [""] * len(cues))
        ax.tick_params(length=0)
        ax.grid(visible=False)
        ax.spines[:].set_visible(False)
        ax.set_title(name.replace(": ", ":\n").replace(", ", ",\n"))
    figure.supxlabel(f"points of {FIGURE}, 95% interval over seeds; bold: significant after correction", fontsize=8)
    figure.suptitle(title)
    return figure


def draw_cell(ax: Axes, column: int, row: int, effect: Effect, limit: float, cost: bool = False) -> None:
    """Draw one difference: its number, its interval, and its colour, which says whether it is a gain or a cost."""
    number = effect["diff"] or 0.0
    gain = -number if cost else number
    ax.add_patch(
        Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, color=COLOURS(0.5 + 0.5 * gain / limit), linewidth=0)
    )
    ink = "white" if abs(number) > 0.7 * limit else "black"
    weight = "bold" if verdict(FIGURE, effect) in ("better", "worse") else "normal"
    ax.text(column, row - 0.1, f"{number:+.1f}", ha="center", va="center", color=ink, weight=weight)
    if effect["ci95"] is not None:
        low, high = effect["ci95"]
        ax.text(column, row + 0.24, f"{low:+.1f} to {high:+.1f}", ha="center", va="center", color=ink, fontsize=6.5)
