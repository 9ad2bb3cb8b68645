"""Draw what painted cues cost plain learning and what debiasing gives back, a block per study.

    cd benchmarks/h200/seeds
    python ../../stress/picture.py ../../../docs/images/stress.png stress-{cifar10,tiny,coloured-tiny}.csv

Takes the tables that effects.py takes. `droptop stress` draws more of one study: figures/heat_map.py.
"""

import sys
from collections.abc import Sequence

import matplotlib.pyplot as plt
from effects import read
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from droptop.figures.heat_map import draw_cell
from droptop.figures.style import STYLE
from droptop.options import NO_DEBIAS
from droptop.results.statistics import Effect
from droptop.results.stress import FIGURE, Stressed

STREAMS = {"split-cifar10": "Split CIFAR-10", "split-tiny-imagenet9": "Tiny-ImageNet-9"}


def main(picture: str, *tables: str) -> None:
    with plt.rc_context(STYLE):
        blocks([read(table) for table in tables]).savefig(picture, dpi=180)  # sharp where a page shows it at half size


def blocks(streams: Sequence[Sequence[Stressed]]) -> Figure:
    """Draw a block per stream, a row per cue; cues by what they cost on average over the streams that have them."""
    costs: dict[str, list[float]] = {}
    for row in (row for rows in streams for row in rows if row.debias == NO_DEBIAS):
        costs.setdefault(row.cue, []).append(row.cost["diff"] or 0.0)
    cues = sorted(costs, key=lambda cue: -sum(costs[cue]) / len(costs[cue]))
    columns = [list(dict.fromkeys(row.debias for row in rows)) for rows in streams]
    limit = max(abs(effect["diff"] or 0.0) for rows in streams for row in rows if (effect := shown(row)))
    widths = [len(names) for names in columns]
    figure, axes = plt.subplots(
        1, len(streams), width_ratios=widths, squeeze=False, layout="constrained", sharey=True,
        figsize=(1.05 * sum(widths) + 1.3, 0.5 * len(cues) + 1.4),
    )  # fmt: skip
    for ax, rows, names in zip(axes[0], streams, columns):
        for row in rows:
            if (effect := shown(row)) is not None:
                cost = row.debias == NO_DEBIAS
                draw_cell(ax, names.index(row.debias), cues.index(row.cue), effect, limit, cost)
        dress(ax, rows[0], names, cues)
    figure.supxlabel(f"points of {FIGURE}, 95% intervals; bold: significant after correction", fontsize=8)
    return figure


def shown(row: Stressed) -> Effect | None:
    """Return what a cell shows: of the plain arm what the cue costs, of others what they give back."""
    return row.cost if row.debias == NO_DEBIAS else row.given_back


def dress(ax: Axes, row: Stressed, arms: Sequence[str], cues: Sequence[str]) -> None:
    """Name a block, its columns and its rows."""
    plus = "\n+ "  # recipes that are joined take a line each
    given_back = {arm: f"given back\nby {arm.replace('+', plus)}" for arm in arms}
    heads = [f"cost to plain\n{row.method.upper()}" if arm == NO_DEBIAS else given_back[arm] for arm in arms]
    ax.set(xlim=(-0.5, len(arms) - 0.5), ylim=(len(cues) - 0.5, -0.5))
    ax.set_xticks(range(len(arms)), heads)
    ax.set_yticks(range(len(cues)), cues)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    ax.set_title(f"{STREAMS.get(row.data, row.data)}, {row.cost['n']} seeds")


if __name__ == "__main__":
    main(*sys.argv[1:])
