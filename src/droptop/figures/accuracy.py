"""Figures of accuracy after each task: curves over tasks, and matrices of task by task."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from droptop.figures.style import colour_of, in_legend
from droptop.results.statistics import standard_error

ACROSS = 5  # test sets side by side


def accuracy_after_tasks(arms: dict[str, Any], title: str) -> Figure:
    """Draw accuracy over the classes seen after each task, with standard errors over seeds; a panel per test set."""
    tests = list(next(iter(arms.values()))["tests"])
    rows = in_rows(tests)
    figure, axes = plt.subplots(
        len(rows),
        len(rows[0]),
        sharey=True,
        squeeze=False,
        layout="constrained",
        figsize=(3.2 * len(rows[0]) + 0.6, 2.7 * len(rows) + 0.4),
    )
    for ax in axes.flat[len(tests) :]:
        ax.set_axis_off()
    for ax, test in zip(axes.flat, tests):
        for arm, summary in arms.items():
            curves = np.array(summary["tests"][test]["A"])
            tasks = np.arange(1, curves.shape[1] + 1)
            mean = curves.mean(0)
            ax.plot(tasks, mean, color=colour_of(arm, arms), marker="o", markersize=3.5, label=in_legend(arm))
            if len(curves) > 1:
                error = standard_error(curves)
                ax.fill_between(tasks, mean - error, mean + error, color=colour_of(arm, arms), alpha=0.2, linewidth=0)
        ax.set(title=f"test set: {test}", xlabel="after task", xticks=tasks)
    for row in axes:
        row[0].set_ylabel("accuracy over classes seen (%)")
    if len(arms) <= 2:
        axes[0][0].legend(frameon=False, loc="lower left")
    else:
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(arms), frameon=False)
    seeds = len(next(iter(arms.values()))["seeds"])
    figure.suptitle(title + (f" (mean and standard error of {seeds} seeds)" if seeds > 1 else ""))
    return figure


def accuracy_matrices(arms: dict[str, Any], title: str) -> Figure:
    """Draw accuracy on task j after task i, mean over seeds: a row per arm, a column per test set.

    Test sets that do not fit in one row of panels get the same rows again below.
    """
    lines = in_rows(list(next(iter(arms.values()))["tests"]))
    rows = [(arm, summary, tests) for tests in lines for arm, summary in arms.items()]
    figure, axes = plt.subplots(
        len(rows),
        len(lines[0]),
        squeeze=False,
        layout=ConstrainedLayoutEngine(hspace=0.06),
        figsize=(2.5 * len(lines[0]) + 0.9, 2.6 * len(rows) + 0.5),
    )
    for row, (arm, summary, tests) in zip(axes, rows):
        for ax in row[len(tests) :]:
            ax.set_axis_off()
        for ax, test in zip(row, tests):
            matrix = np.array(summary["tests"][test]["matrix"], dtype=float).mean(0)
            image = ax.imshow(matrix, vmin=0, vmax=100, cmap="viridis")
            for (i, j), value in np.ndenumerate(matrix):
                if not np.isnan(value):
                    colour = "black" if value > 60 else "white"
                    ax.text(j, i, str(int(value + 0.5)), ha="center", va="center", fontsize=7, color=colour)
            ticks = range(len(matrix))
            labels = [tick + 1 for tick in ticks]
            ax.set(title=f"{arm}: {test}", xticks=ticks, yticks=ticks, xticklabels=labels, yticklabels=labels)
            ax.grid(False)
            if arm == list(arms)[-1]:
                ax.set_xlabel("accuracy on task")
        row[0].set_ylabel("after task")
    figure.colorbar(image, ax=axes, shrink=0.8, label="%")
    figure.suptitle(title)
    return figure


def in_rows(tests: list[str]) -> list[list[str]]:
    """Return test sets in rows of equal length, at most ACROSS each; the last row may be shorter."""
    length = -(-len(tests) // -(-len(tests) // ACROSS))
    return [tests[start : start + length] for start in range(0, len(tests), length)]
