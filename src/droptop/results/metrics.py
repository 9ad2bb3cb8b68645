"""From counts of right answers to the paper's figures.

An evaluation is whole numbers: for each group of samples and each class, how many there were and how many were right.
Everything else follows, exactly. Groups are "all", or "follow" and "contradict" where a stream knows its shortcut.

    a[i][j]   accuracy on the classes of task j after task i, predicted among all classes seen, in percent
    A_i       accuracy over all samples of the classes seen after task i
    A_avg     mean of A_1 .. A_T;   A_last = A_T
    F_last    mean over j < T of (max over i < T of a[i][j]) - a[T][j]
    A_auc     anytime accuracy: the area under accuracy over the classes seen against samples (in a run, steps), a mean

Where tasks blur, classes are seen before their task: these count in A_i from then on, in a[i][j] from task j on.
"""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

SMALLEST_GROUP = 5  # a worst group of fewer samples would be noise


class Tally(TypedDict):
    """Counts of one group, a class each; 0 where the class is not seen yet."""

    n: list[int]
    correct: list[int]


Evaluation = dict[str, Tally]  # by group
Tasks = tuple[tuple[int, ...], ...]  # classes of each task


def _percent(correct: int, n: int) -> float:
    return 100 * correct / n if n else float("nan")


def _sum(groups: Evaluation) -> tuple[np.ndarray, np.ndarray]:
    tallies = list(groups.values())
    return np.sum([t["n"] for t in tallies], axis=0), np.sum([t["correct"] for t in tallies], axis=0)


def accuracy(groups: Evaluation, classes: tuple[int, ...] | None = None) -> float:
    """Over all samples, or those of some classes."""
    n, correct = _sum(groups)
    chosen = slice(None) if classes is None else list(classes)
    return _percent(int(correct[chosen].sum()), int(n[chosen].sum()))


def accuracy_matrix(after: list[Evaluation], tasks: Tasks) -> list[list[float | None]]:
    """a[i][j] from the evaluations after each task; None for j > i, and while none of task j's classes is seen."""
    return [
        [
            accuracy(groups, classes) if j <= i and _sum(groups)[0][list(classes)].any() else None
            for j, classes in enumerate(tasks)
        ]
        for i, groups in enumerate(after)
    ]


def forgetting(matrix: list[list[float | None]]) -> float | None:
    """F_last; None for a stream of one task, which forgets nothing."""
    *before, last = matrix
    known = [([a for row in before if (a := row[j]) is not None], end) for j, end in enumerate(last)]
    lost = [max(values) - end for values, end in known if values and end is not None]
    return float(np.mean(lost)) if lost else None


def worst_group(groups: Evaluation) -> float | None:
    """The lowest accuracy of a class among the samples that follow the shortcut or contradict it."""
    return min(
        (
            _percent(correct, n)
            for tally in groups.values()
            for n, correct in zip(tally["n"], tally["correct"])
            if n >= SMALLEST_GROUP
        ),
        default=None,
    )


def accuracy_curve(after: list[Evaluation]) -> list[float]:
    """A_1 .. A_T."""
    return [accuracy(groups) for groups in after]


def anytime_accuracy(curve: Sequence[tuple[int, float]]) -> float:
    """A_auc of (samples seen, accuracy) pairs: each measurement stands for all samples since the one before it, as in
    i-Blurry (Koh et al., 2022), whose sum this is where measurements are evenly spaced."""
    places, values = np.array(curve, dtype=float).T
    known = ~np.isnan(values)  # nothing to measure on: the classes seen so far are not in the test set
    weights = np.diff(places, prepend=0)[known]
    return float(np.average(values[known], weights=weights)) if known.any() else float("nan")


def metrics(
    after: list[Evaluation], tasks: Tasks, anytime: Sequence[tuple[int, Evaluation]] = ()
) -> dict[str, float | None]:
    """The figures of one test set from its evaluations after each task and, for A_auc, at any step."""
    figures: dict[str, float | None] = {
        "A_avg": float(np.mean(accuracy_curve(after))),
        "A_last": accuracy(after[-1]),
        "F_last": forgetting(accuracy_matrix(after, tasks)),
    }
    if anytime:
        figures["A_auc"] = anytime_accuracy([(step, accuracy(groups)) for step, groups in anytime])
    if "follow" in after[-1]:  # at the end of the stream
        for name in ("follow", "contradict"):
            there = sum(after[-1][name]["n"]) > 0
            figures[name] = accuracy({name: after[-1][name]}) if there else None
        figures["worst"] = worst_group(after[-1])
    return figures
