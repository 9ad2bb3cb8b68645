"""Curves over training, from the lines of metrics.jsonl, for figures and the report page."""

from typing import Any

import numpy as np

WINDOW = 15  # steps that a share is averaged over

Lines = list[dict[str, Any]]
Curves = dict[str, tuple[list[int], list[float]]]  # by name: steps, and the value from each step on


def kappa_series(start: float, per_class: bool, classes: list[str], tasks: list[list[int]], lines: Lines) -> Curves:
    """Return kappa' of every class from its task on, up to the last step.

    Where tasks blur and it changes before, from its first change on. `start` is the value that every class begins with.
    """
    names, groups = (classes, tasks) if per_class else (["all classes"], [[0]])
    starts = [0] + [line["step"] for line in lines if line.get("task_end")]
    changes: dict[int, list[tuple[int, float]]] = {}
    for line in lines:
        for group, value in line.get("kappa", {}).items():
            changes.setdefault(int(group), []).append((line["step"], value))
    curves, last = {}, lines[-1]["step"]
    for group, task in sorted((group, task) for task, members in enumerate(groups) for group in members):
        changed = changes.get(group, [])
        if task >= len(starts) and not changed:
            continue  # its task has not come yet
        begin = min([*starts[task : task + 1], *(step for step, _ in changed)])
        steps, values = zip((begin, start), *changed)
        curves[names[group]] = [*steps, last], [*values, values[-1]]
    return curves


def window_of(seeds: list[Lines]) -> int:
    """Return how many steps a share is averaged over: less than `WINDOW` where that would leave few points."""
    return max(1, min(WINDOW, min(map(len, seeds)) // 4))


def shortcut_series(seeds: list[Lines], name: str, window: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return steps and, in percent, the share of dropped cells that lay on the shortcut: mean over seeds and a window.

    `name` is "share", or "chance" for the share that random cells would have.
    """
    steps = min(map(len, seeds))  # with rare classes, seeds may differ by a batch
    values = np.array(
        [[100 * line["dropped"][name] if "dropped" in line else np.nan for line in lines[:steps]] for lines in seeds]
    )  # NaN where nothing was dropped in a step
    width = window_of(seeds) if window is None else min(window, steps)
    total, count = (
        np.convolve(part.sum(0), np.ones(width), "valid") for part in (np.nan_to_num(values), np.isfinite(values))
    )
    known = count > 0
    return np.arange(width, steps + 1)[known], total[known] / count[known]
