"""Curves over training, from the lines of metrics.jsonl; drawn as figures and on the report page."""

from typing import Any

import numpy as np

WINDOW = 15  # steps a share is averaged over

Lines = list[dict[str, Any]]
Curves = dict[str, tuple[list[int], list[float]]]  # by name: steps, and the value from each of them on


def kappa_series(start: float, per_class: bool, classes: list[str], tasks: list[list[int]], lines: Lines) -> Curves:
    """kappa' of every class from its task on (or its first change, where tasks blur); the last value is carried on to
    the last step."""
    names, groups = (classes, tasks) if per_class else (["all classes"], [[0]])
    starts = [0] + [line["step"] for line in lines if line.get("task_end")]
    changes: dict[int, list[tuple[int, float]]] = {}
    for line in lines:
        for group, value in line.get("kappa", {}).items():
            changes.setdefault(int(group), []).append((line["step"], value))
    curves, last = {}, lines[-1]["step"]
    for group, task in sorted((group, task) for task, own in enumerate(groups) for group in own):
        own = changes.get(group, [])
        if task >= len(starts) and not own:
            continue  # has not arrived yet
        begun = min([*starts[task : task + 1], *(step for step, _ in own)])
        steps, values = zip((begun, start), *own)
        curves[names[group]] = [*steps, last], [*values, values[-1]]
    return curves


def shortcut_series(seeds: list[Lines], name: str, window: int = WINDOW) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and in percent the share of dropped cells on the shortcut ("share") or what it would be by "chance": mean
    over seeds and a few steps."""
    steps = min(map(len, seeds))  # seeds whose rare classes lie in other tasks may have a batch more or less
    values = np.array(
        [[100 * line["dropped"][name] if "dropped" in line else np.nan for line in lines[:steps]] for lines in seeds]
    )  # nothing may have been dropped in a step
    width = min(window, steps)
    total, count = (
        np.convolve(part.sum(0), np.ones(width), "valid") for part in (np.nan_to_num(values), np.isfinite(values))
    )
    there = count > 0
    return np.arange(width, steps + 1)[there], total[there] / count[there]
