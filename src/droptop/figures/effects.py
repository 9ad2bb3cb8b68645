"""The figure of a comparison at one glance: what every arm changes, on every test set."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from droptop.figures.accuracy import in_rows
from droptop.figures.style import colour_of
from droptop.options import NO_DEBIAS
from droptop.results.statistics import is_significant


def arm_effects(comparison: dict[str, Any], title: str) -> Figure:
    """Draw the difference of every arm to the reference in A_avg, with its 95% interval; a panel per test set.

    The dot of a difference that is significant after correction is filled.
    """
    effects = comparison["effects"]
    arms, tests = list(effects), list(next(iter(effects.values())))
    rows = in_rows(tests)
    size = (2.6 * len(rows[0]) + 1.2, (0.3 * len(arms) + 0.8) * len(rows) + 0.4)
    figure, axes = plt.subplots(
        len(rows), len(rows[0]), sharex=True, sharey=True, squeeze=False, layout="constrained", figsize=size
    )
    for ax in axes.flat[len(tests) :]:
        ax.set_axis_off()
    for ax, test in zip(axes.flat, tests):
        for place, arm in enumerate(arms):
            effect, colour = effects[arm][test]["A_avg"], colour_of(arm, arms)
            if effect["diff"] is None:
                continue
            ax.plot(effect["ci95"] or [effect["diff"]] * 2, [place] * 2, color=colour, linewidth=3, alpha=0.4)
            ax.plot(
                effect["diff"],
                place,
                marker="o",
                color=colour,
                markerfacecolor=colour if is_significant("A_avg", effect) else "white",
            )
        ax.axvline(0, color="black", linewidth=0.8, linestyle=":")
        ax.set(title=test, yticks=range(len(arms)), yticklabels=arms)
        ax.grid(axis="y", visible=False)
    axes[0][0].invert_yaxis()  # the first arm on top; axes are shared
    reference = next(iter(comparison["arms"]))
    beside = "the plain arm" if reference == NO_DEBIAS else reference
    figure.supxlabel(f"points of A_avg beside {beside}, with 95% interval; filled: significant", fontsize=8)
    figure.suptitle(title)
    return figure
