"""From counts of right answers to the paper's figures.

An evaluation is whole numbers: for each group of samples and each class, how many there were and how many were right.
Everything else follows, exactly. Groups are "all", or "follow" and "contradict" where a stream knows its shortcut.

    a[i][j]   accuracy on the classes of task j after task i, predicted among all classes seen, in percent
    A_i       accuracy over all samples of the classes seen after task i
    A_avg     mean of A_1 .. A_T;   A_last = A_T
    F_last    mean over j < T of (max over i < T of a[i][j]) - a[T][j]
"""

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
    """a[i][j] from the evaluations after each task; None for j > i."""
    return [[accuracy(groups, tasks[j]) if j <= i else None for j in range(len(tasks))]
            for i, groups in enumerate(after)]


def forgetting(matrix: list[list[float | None]]) -> float | None:
    """F_last; None for a stream of one task, which forgets nothing."""
    last = len(matrix) - 1
    lost = [max(value for row in matrix[j:last] if (value := row[j]) is not None) - (matrix[last][j] or 0.0)
            for j in range(last)]
    return float(np.mean(lost)) if lost else None


def worst_group(groups: Evaluation) -> float | None:
    """The lowest accuracy of a class among the samples that follow the shortcut or contradict it."""
    return min((_percent(correct, n) for tally in groups.values()
                for n, correct in zip(tally["n"], tally["correct"]) if n >= SMALLEST_GROUP), default=None)


def accuracy_curve(after: list[Evaluation]) -> list[float]:
    """A_1 .. A_T."""
    return [accuracy(groups) for groups in after]


def metrics(after: list[Evaluation], tasks: Tasks) -> dict[str, float | None]:
    """The figures of one test set from its evaluations after each task."""
    figures: dict[str, float | None] = {
        "A_avg": float(np.mean(accuracy_curve(after))),
        "A_last": accuracy(after[-1]),
        "F_last": forgetting(accuracy_matrix(after, tasks)),
    }
    if "follow" in after[-1]:  # at the end of the stream
        for name in ("follow", "contradict"):
            there = sum(after[-1][name]["n"]) > 0
            figures[name] = accuracy({name: after[-1][name]}) if there else None
        figures["worst"] = worst_group(after[-1])
    return figures
