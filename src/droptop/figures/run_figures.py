"""The figures of a run and of a comparison: PNG files in its `figures/`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from PIL import Image

from droptop.errors import BadRequest
from droptop.figures.accuracy import accuracy_after_tasks, accuracy_matrices
from droptop.figures.attention_maps import attention_maps
from droptop.figures.effects import arm_effects
from droptop.figures.over_steps import intensities, shortcut_shares
from droptop.figures.style import STYLE, picture, save
from droptop.results.series import Lines
from droptop.runs.folder import RunFolder, read_metrics, read_result
from droptop.runs.records import read_maps
from droptop.system.short_names import short_name


def draw_run(run: RunFolder, summary: dict[str, Any]) -> dict[int, str]:
    """Write the figures of one arm; return the seeds whose metrics cannot be read, with the reasons.

    Only curves over steps need metrics: they are drawn of the other seeds.
    """
    metrics, unread = dict[int, Lines](), dict[int, str]()
    for seed in run.seeds:
        try:
            metrics[seed] = read_metrics(run.path, seed, len(read_result(run.path, seed)["tasks"]))
        except BadRequest as error:
            unread[seed] = str(error)
    with plt.rc_context(STYLE):
        title, debias = title_of(summary), short_name(summary["debias"])
        save(accuracy_after_tasks({debias: summary}, title), run.path, "accuracy")
        save(accuracy_matrices({debias: summary}, title), run.path, "matrix")
        for seed, lines in [*metrics.items()][:1]:
            if run.adapts:
                save(intensities(run, read_result(run.path, seed), lines, title, seed), run.path, "kappa")
            if any("dropped" in line for line in lines):
                save(shortcut_shares(list(metrics.values()), title), run.path, "shortcut")
        if (maps := read_maps(run.path, run.seeds[0])) is not None:
            save(attention_maps({debias: maps}, title), run.path, "attention")
    return unread


def title_of(summary: dict[str, Any]) -> str:
    """Return the title of the figures of one arm."""
    method, debias, data = (short_name(summary[name]) for name in ("method", "debias", "data"))
    return f"{method}, {debias}, on {data}"


def draw_comparison(runs: Sequence[RunFolder], out: Path, comparison: dict[str, Any]) -> None:
    """Write the figures of a comparison, with all arms side by side."""
    arms = comparison["arms"]
    with plt.rc_context(STYLE):
        first = next(iter(arms.values()))
        methods = dict.fromkeys(short_name(arm["method"]) for arm in arms.values())
        title = f"{', '.join(methods)} on {short_name(first['data'])}"
        if len(arms) == 2:
            title += f", {' against '.join(arms)}"
        save(arm_effects(comparison, title), out, "effects")
        save(accuracy_after_tasks(arms, title), out, "accuracy")
        save(accuracy_matrices(arms, title), out, "matrix")
        maps = {run.name: of_arm for run in runs if (of_arm := read_maps(run.path, run.seeds[0])) is not None}
        if len(maps) == len(runs):
            save(attention_maps(maps, title), out, "attention")


def seed_pictures(run: RunFolder, seed: int, result: dict[str, Any], lines: Lines) -> Iterator[tuple[str, Image.Image]]:
    """Yield the figures of one seed that need its metrics alone, as images by name."""
    arms = {run.name: run.summary_of({seed: result})}
    title = f"{title_of(arms[run.name])}, seed {seed}"
    with plt.rc_context(STYLE):
        yield "figures/accuracy", picture(accuracy_after_tasks(arms, title))
        yield "figures/matrix", picture(accuracy_matrices(arms, title))
        if run.adapts:
            yield "figures/kappa", picture(intensities(run, result, lines, title, seed))
        if any("dropped" in line for line in lines):
            yield "figures/shortcut", picture(shortcut_shares([lines], title))
