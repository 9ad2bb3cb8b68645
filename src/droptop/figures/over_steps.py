"""Figures over the steps of a stream: intensities, and the share of dropped cells that lie on the shortcut."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from droptop.figures.style import DEBIASED, PLAIN
from droptop.results.series import Curves, Lines, kappa_series, shortcut_series, window_of
from droptop.runs.folder import RunFolder

MOST_ROWS = 20  # classes with a panel of their own; more of them share a heat map


def intensities(run: RunFolder, result: dict[str, Any], lines: Lines, title: str, seed: int) -> Figure:
    """Draw kappa' of a seed over time, a row per class; a heat map where there are many classes."""
    curves = kappa_series(run.start, run.per_class, result["classes"], result["tasks"], lines)
    figure = kappa_curves(curves, lines) if len(curves) <= MOST_ROWS else kappa_map(curves, lines, run.gamma)
    figure.suptitle(f"{title}, seed {seed}: kappa', percent of the first map dropped by attention", fontsize=10)
    return figure


def kappa_curves(curves: Curves, lines: list[dict[str, Any]]) -> Figure:
    """Draw intensities over steps, a panel per class."""
    figure, axes = plt.subplots(
        len(curves),
        1,
        figsize=(7, 0.42 * len(curves) + 1.2),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for ax, (name, (steps, values)) in zip(axes[:, 0], curves.items()):
        ax.step(steps, values, where="post", color=DEBIASED, linewidth=1.5)
        mark_tasks(ax, lines)
        ax.set_xlabel("")
        ax.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
        ax.tick_params(labelsize=6)
    axes[0][0].margins(y=0.25)
    axes[-1][0].set_xlabel("step (a vertical line ends a task)")
    return figure


def kappa_map(curves: Curves, lines: list[dict[str, Any]], gamma: float) -> Figure:
    """Draw intensities as a heat map, classes x steps: blank before a class arrives, the first one at the top."""
    names = sorted(curves, key=lambda name: curves[name][0][0])
    cells = np.full((len(names), lines[-1]["step"]), np.nan)
    for row, name in zip(cells, names):
        for start, value in zip(*curves[name]):
            row[start:] = value
    figure, ax = plt.subplots(figsize=(8, 0.115 * len(names) + 1.2), layout="constrained")
    image = ax.imshow(
        cells,
        aspect="auto",
        interpolation="nearest",
        cmap="viridis",
        vmin=0,
        vmax=gamma,
        extent=(0, cells.shape[1], len(names), 0),
    )
    ax.set_yticks(np.arange(len(names)) + 0.5, names, fontsize=6)
    ax.tick_params(axis="y", length=0)
    ax.grid(False)
    mark_tasks(ax, lines)
    figure.colorbar(image, ax=ax, label="%", aspect=40)
    return figure


def shortcut_shares(seeds: list[list[dict[str, Any]]], title: str, window: int | None = None) -> Figure:
    """Draw the share of dropped cells on the shortcut against chance, as a mean over seeds and `window` steps."""
    figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
    window = window or window_of(seeds)
    for name, colour, label in (("share", DEBIASED, "dropped cells"), ("chance", PLAIN, "chance")):
        ax.plot(*shortcut_series(seeds, name, window), color=colour, label=label)
    mark_tasks(ax, seeds[0])
    ax.set(
        title=f"{title}: dropped cells on the shortcut",
        ylim=(0, None),
        ylabel=f"% (mean of {len(seeds)} seeds and {window} steps)",
    )
    ax.legend(frameon=False)
    return figure


def mark_tasks(ax: Axes, lines: list[dict[str, Any]]) -> None:
    """Draw a vertical line where each task ends."""
    for line in lines:
        if line.get("task_end"):
            ax.axvline(line["step"], color="black", alpha=0.15, linewidth=0.8)
    ax.set_xlabel("step (a vertical line ends a task)")
