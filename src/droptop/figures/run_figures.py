"""Results as pictures: PNG files in a run's `figures/`."""

import io
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle
from PIL import Image

from droptop.errors import BadRequest
from droptop.results.series import WINDOW, Curves, Lines, kappa_series, shortcut_series
from droptop.runs.folder import RunFolder, read_metrics, read_result
from droptop.runs.records import Maps, read_maps

PLAIN, DEBIASED = "#5b6b82", "#e0651b"
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "font.size": 9,
    "axes.titlesize": 9,
    "figure.titlesize": 11,
}
LACKING = "figures show boxes for letters that their font does not have"
ACROSS = 5  # test sets side by side
MOST_ROWS = 20  # classes with a panel of their own; more of them share a heat map


def draw_run(run: RunFolder, summary: dict[str, Any]) -> dict[int, str]:
    """The figures of one arm; gives the seeds whose metrics cannot be read, and why. Results do not depend on these,
    curves over steps do and are drawn of the others."""
    metrics, unread = dict[int, Lines](), dict[int, str]()
    for seed in run.seeds:
        try:
            metrics[seed] = read_metrics(run.path, seed, len(read_result(run.path, seed)["tasks"]))
        except BadRequest as error:
            unread[seed] = str(error)
    with plt.rc_context(STYLE):
        title = f"{summary['method']}, {summary['debias']}, on {summary['data']}"
        _save(accuracy_after_tasks({summary["debias"]: summary}, title), run.path, "accuracy")
        _save(accuracy_matrices({summary["debias"]: summary}, title), run.path, "matrix")
        for seed, lines in [*metrics.items()][:1]:
            if run.adapts:
                _save(intensities(run, read_result(run.path, seed), lines, title, seed), run.path, "kappa")
            if any("dropped" in line for line in lines):
                _save(shortcut_shares(list(metrics.values()), title), run.path, "shortcut")
        if (maps := read_maps(run.path, run.seeds[0])) is not None:
            _save(attention_maps({summary["debias"]: maps}, title), run.path, "attention")
    return unread


def draw_comparison(runs: Sequence[RunFolder], out: Path, comparison: dict[str, Any]) -> None:
    """The figures of both arms side by side."""
    arms = comparison["arms"]
    with plt.rc_context(STYLE):
        first = next(iter(arms.values()))
        title = f"{first['method']} on {first['data']}, {' against '.join(arms)}"
        _save(accuracy_after_tasks(arms, title), out, "accuracy")
        _save(accuracy_matrices(arms, title), out, "matrix")
        found = {run.debias: read_maps(run.path, run.seeds[0]) for run in runs}
        maps = {arm: found_maps for arm, found_maps in found.items() if found_maps is not None}
        if len(maps) == len(found):
            _save(attention_maps(maps, title), out, "attention")


def seed_pictures(run: RunFolder, seed: int, result: dict[str, Any], lines: Lines) -> Iterator[tuple[str, Image.Image]]:
    """Those of one seed that its metrics alone tell, by name."""
    arms = {run.debias: run.summary_of({seed: result})}
    title = f"{run.method}, {run.debias}, on {run.data}, seed {seed}"
    with plt.rc_context(STYLE):
        yield "figures/accuracy", _picture(accuracy_after_tasks(arms, title))
        yield "figures/matrix", _picture(accuracy_matrices(arms, title))
        if run.adapts:
            yield "figures/kappa", _picture(intensities(run, result, lines, title, seed))
        if any("dropped" in line for line in lines):
            yield "figures/shortcut", _picture(shortcut_shares([lines], title))


def _picture(figure: Figure) -> Image.Image:
    file = io.BytesIO()
    _write(figure, file, 110)
    return Image.open(file).convert("RGB")


def _save(figure: Figure, run: Path, name: str) -> None:
    (run / "figures").mkdir(exist_ok=True)
    _write(figure, run / "figures" / f"{name}.png", 130)


def _write(figure: Figure, file: Path | io.BytesIO, dpi: int) -> None:
    """Letters that the font lacks are told of in the same words for every one of them, so that they are said once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(file, format="png", dpi=dpi)
    plt.close(figure)
    for each in caught:
        warnings.warn(LACKING if "missing from font" in str(each.message) else each.message, stacklevel=2)


def _colour(arm: str) -> str:
    return PLAIN if arm == "none" else DEBIASED


def accuracy_after_tasks(arms: dict[str, Any], title: str) -> Figure:
    """Accuracy over the classes seen after each task, with standard errors over seeds, a panel a test set."""
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
            ax.plot(tasks, mean, color=_colour(arm), marker="o", markersize=3.5, label=arm)
            if len(curves) > 1:
                error = curves.std(0, ddof=1) / np.sqrt(len(curves))
                ax.fill_between(tasks, mean - error, mean + error, color=_colour(arm), alpha=0.2, linewidth=0)
        ax.set(title=f"test set: {test}", xlabel="after task", xticks=tasks)
    for row in axes:
        row[0].set_ylabel("accuracy over classes seen (%)")
    axes[0][0].legend(frameon=False, loc="lower left")
    seeds = len(next(iter(arms.values()))["seeds"])
    figure.suptitle(title + (f" (mean and standard error of {seeds} seeds)" if seeds > 1 else ""))
    return figure


def accuracy_matrices(arms: dict[str, Any], title: str) -> Figure:
    """Accuracy on task j after task i, mean over seeds: a row an arm, a column a test set; the same again below for
    further test sets."""
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
                    ax.text(
                        j,
                        i,
                        str(int(value + 0.5)),
                        ha="center",
                        va="center",
                        fontsize=7,
                        color="black" if value > 60 else "white",
                    )
            ticks = range(len(matrix))
            ax.set(
                title=f"{arm}: {test}",
                xticks=ticks,
                yticks=ticks,
                xticklabels=[t + 1 for t in ticks],
                yticklabels=[t + 1 for t in ticks],
            )
            ax.grid(False)
            if arm == list(arms)[-1]:
                ax.set_xlabel("accuracy on task")
        row[0].set_ylabel("after task")
    figure.colorbar(image, ax=axes, shrink=0.8, label="%")
    figure.suptitle(title)
    return figure


def in_rows(tests: list[str]) -> list[list[str]]:
    """Test sets in rows of equal length, the last one perhaps shorter, none too long for a page."""
    length = -(-len(tests) // -(-len(tests) // ACROSS))
    return [tests[start : start + length] for start in range(0, len(tests), length)]


def _mark_tasks(ax: Axes, lines: list[dict[str, Any]]) -> None:
    for line in lines:
        if line.get("task_end"):
            ax.axvline(line["step"], color="black", alpha=0.15, linewidth=0.8)
    ax.set_xlabel("step (a vertical line ends a task)")


def intensities(run: RunFolder, result: dict[str, Any], lines: Lines, title: str, seed: int) -> Figure:
    """Draw kappa' of a seed over time, a row per class; a heat map where there are many classes."""
    curves = kappa_series(run.start, run.per_class, result["classes"], result["tasks"], lines)
    figure = kappa_curves(curves, lines) if len(curves) <= MOST_ROWS else kappa_map(curves, lines, run.gamma)
    figure.suptitle(f"{title}, seed {seed}: kappa', percent of the first map dropped by attention", fontsize=10)
    return figure


def kappa_curves(curves: Curves, lines: list[dict[str, Any]]) -> Figure:
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
        _mark_tasks(ax, lines)
        ax.set_xlabel("")
        ax.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
        ax.tick_params(labelsize=6)
    axes[0][0].margins(y=0.25)
    axes[-1][0].set_xlabel("step (a vertical line ends a task)")
    return figure


def kappa_map(curves: Curves, lines: list[dict[str, Any]], gamma: float) -> Figure:
    """Classes x steps, blank before a class arrives; the class that arrives first stands at the top."""
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
    _mark_tasks(ax, lines)
    figure.colorbar(image, ax=ax, label="%", aspect=40)
    return figure


def shortcut_shares(seeds: list[list[dict[str, Any]]], title: str, window: int = WINDOW) -> Figure:
    """Share of the dropped cells that lies on the shortcut, against chance, mean over seeds, smoothed."""
    figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
    for name, colour, label in (("share", DEBIASED, "dropped cells"), ("chance", PLAIN, "chance")):
        ax.plot(*shortcut_series(seeds, name, window), color=colour, label=label)
    _mark_tasks(ax, seeds[0])
    ax.set(
        title=f"{title}: dropped cells on the shortcut",
        ylim=(0, None),
        ylabel=f"% (mean of {len(seeds)} seeds and {window} steps)",
    )
    ax.legend(frameon=False)
    return figure


def attention_maps(arms: dict[str, Maps], title: str) -> Figure:
    """Sample images, and over them each arm's attention and the cells it drops, at the end of training."""
    first = next(iter(arms.values()))
    count = len(first.images)
    figure, axes = plt.subplots(
        1 + len(arms),
        count,
        figsize=(1.15 * count + 0.5, 1.2 * (1 + len(arms)) + 0.6),
        layout="constrained",
        squeeze=False,
    )
    side, last = first.images.shape[1], [maps.moments[-1] for maps in arms.values()]
    for column, image in enumerate(first.images):
        axes[0][column].imshow(image)
        axes[0][column].set_title(first.names[column], fontsize=8)
        for row, moment in zip(axes[1:], last):
            row[column].imshow(image, alpha=0.5)
            row[column].imshow(moment.attention[column], cmap="magma", alpha=0.65, extent=(0, side, side, 0))
            if moment.dropped is not None:
                cell = side / moment.dropped.shape[1]
                for i, j in np.argwhere(moment.dropped[column]):
                    row[column].add_patch(
                        Rectangle((j * cell, i * cell), cell, cell, fill=False, edgecolor="cyan", linewidth=0.8)
                    )
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
        for spine in ax.spines.values():
            spine.set_visible(False)
    axes[0][0].set_ylabel("image")
    for row, arm in zip(axes[1:], arms):
        row[0].set_ylabel(arm)
    squares = "; squares: dropped cells" if any(moment.dropped is not None for moment in last) else ""
    figure.suptitle(f"{title}: attention at the end (bright: high{squares})", fontsize=9)
    return figure
