"""The paper's figures, from counts of right answers.

An evaluation is whole numbers: for each group of samples and each class, how many samples there were and how many were
classified correctly. All figures follow from these. Groups are "all", or "follow" and "contradict" where a stream knows
its shortcut; beside these, a stream may have columns of groups of its own, each with an evaluation by its groups.

    a[i][j]   accuracy on the classes of task j after task i, predicted among all classes seen, in percent
    A_i       accuracy over all samples of the classes seen after task i
    A_avg     mean of A_1 .. A_T;   A_last = A_T
    F_last    mean over j < T of (max over i < T of a[i][j]) - a[T][j]
    A_auc     anytime accuracy: mean accuracy over the classes seen, each value weighted by samples (in a run, steps)

Where tasks blur, classes are seen before their task: they count in A_i from then on, in a[i][j] only from task j on.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import TypedDict

import numpy as np

from droptop.errors import BadRequest

WORST, GAP = "worst ", "gap "  # what the names of figures of a column of groups begin with
SMALLEST_GROUP = 5  # samples; the accuracy of a smaller group is noise


class Tally(TypedDict):
    """Hold the counts of one group per class; 0 where the class is not seen yet."""

    n: list[int]
    correct: list[int]


Evaluation = dict[str, Tally]  # by group
Tasks = tuple[tuple[int, ...], ...]  # classes of each task


def _percent(correct: int, n: int) -> float:
    return 100 * correct / n if n else float("nan")


def _sum(groups: Evaluation) -> tuple[np.ndarray, np.ndarray]:
    tallies = list(groups.values())
    return np.sum([t["n"] for t in tallies], axis=0), np.sum([t["correct"] for t in tallies], axis=0)


def _numbers(classes: Iterable[int], count: int) -> list[int]:
    """Return numbers of classes as a list; refuse others, which numpy would take for a mask or count from the end."""
    listed = list(classes) if isinstance(classes, Iterable) else [classes]
    numbers = [int(each) for each in listed if isinstance(each, Integral) and not isinstance(each, bool)]
    if len(set(numbers) & set(range(count))) < len(listed) or not isinstance(classes, Iterable):
        raise BadRequest(f"classes must be numbers from 0 to {count - 1}, each once, not {classes}")
    return numbers


def accuracy(groups: Evaluation, classes: Iterable[int] | None = None) -> float:
    """Return the accuracy in percent.

    Args:
        groups: Counts by group, as an evaluation gives them.
        classes: Numbers of the classes to count; None counts all.

    Returns:
        Percent of the samples that were classified correctly; NaN where there are none.

    Raises:
        BadRequest: If these are no numbers of classes, each once.
    """
    n, correct = _sum(groups)
    chosen = slice(None) if classes is None else _numbers(classes, len(n))
    return _percent(int(correct[chosen].sum()), int(n[chosen].sum()))


def accuracy_matrix(after: list[Evaluation], tasks: Tasks) -> list[list[float | None]]:
    """Return a[i][j] from the evaluations after each task; None for j > i or while no class of task j is seen."""
    rows = []
    for i, (n, correct) in enumerate(map(_sum, after)):
        counts = [(int(n[[*classes]].sum()), int(correct[[*classes]].sum())) for classes in tasks[: i + 1]]
        rows.append([_percent(right, of) if of else None for of, right in counts] + [None] * (len(tasks) - len(counts)))
    return rows


def forgetting(matrix: list[list[float | None]]) -> float | None:
    """Return F_last; None for a stream of one task, in which nothing can be forgotten."""
    *before, last = matrix
    known = [([a for row in before if (a := row[j]) is not None], end) for j, end in enumerate(last)]
    lost = [max(values) - end for values, end in known if values and end is not None]
    return float(np.mean(lost)) if lost else None


def group_accuracies(groups: Evaluation) -> dict[str, float | None]:
    """Return the accuracy of every group; None where it has no sample of the classes seen."""
    return {name: accuracy({name: tally}) if sum(tally["n"]) else None for name, tally in groups.items()}


def large_enough(counts: Iterable[tuple[int, int]]) -> list[float]:
    """Return the accuracy of every (samples, right answers) of SMALLEST_GROUP samples or more."""
    return [_percent(correct, n) for n, correct in counts if n >= SMALLEST_GROUP]


def worst_group(groups: Evaluation) -> float | None:
    """Return the lowest accuracy of a class in a group, of SMALLEST_GROUP samples or more; None if there is none."""
    cells = (cell for tally in groups.values() for cell in zip(tally["n"], tally["correct"]))
    return min(large_enough(cells), default=None)


def column_figures(column: str, groups: Evaluation) -> dict[str, float | None]:
    """Return the figures of a column of groups: `worst COLUMN`, `gap COLUMN`, and `COLUMN=GROUP` for every group.

    The gap is the accuracy of the best group minus that of the worst; both of SMALLEST_GROUP samples or more.
    """
    accuracies = large_enough((sum(tally["n"]), sum(tally["correct"])) for tally in groups.values())
    worst, best = min(accuracies, default=None), max(accuracies, default=None)
    figures = {f"{WORST}{column}": worst, f"{GAP}{column}": None if worst is None or best is None else best - worst}
    return figures | {f"{column}={name}": value for name, value in group_accuracies(groups).items()}


def columns_of(figures: Iterable[str]) -> list[str]:
    """Return the columns of groups that there are figures of, by the figures' names."""
    return [figure.removeprefix(WORST) for figure in figures if figure.startswith(WORST)]


def groups_in(figures: Iterable[str], column: str) -> list[str]:
    """Return the groups of a column that there are figures of, by the figures' names."""
    return [figure.removeprefix(f"{column}=") for figure in figures if figure.startswith(f"{column}=")]


def worst_name(figures: Mapping[str, list[float | None]], column: str) -> str | None:
    """Return the group of a column that is the worst in most seeds; None where no group is large enough."""
    lowest = Counter(
        name
        for name in groups_in(figures, column)
        for value, least in zip(figures[f"{column}={name}"], figures[WORST + column])
        if least is not None and value == least
    )
    return lowest.most_common(1)[0][0] if lowest else None


def is_of_group(figure: str) -> bool:
    """Return whether a figure is the accuracy of one group of a column, of which there may be many."""
    return "=" in figure


def guesses(after: list[Evaluation], tasks: Tasks) -> dict[str, float]:
    """Return the A_avg of guesses on a test set: `chance` names one of the classes seen so far at random, `constant`
    always the one with most of its samples.
    """
    seen, chances, constants = set[int](), [], []
    for groups, classes in zip(after, tasks):
        n, _ = _sum(groups)
        seen |= {*classes, *(int(label) for label in n.nonzero()[0])}  # where tasks blur, classes come early
        chances.append(100 / len(seen))
        constants.append(_percent(int(n.max()), int(n.sum())))
    return {"chance": float(np.mean(chances)), "constant": float(np.mean(constants))}


def accuracy_curve(after: list[Evaluation]) -> list[float]:
    """Return A_1 .. A_T from the evaluations after each task."""
    return [accuracy(groups) for groups in after]


def anytime_accuracy(curve: Sequence[tuple[int, float]]) -> float:
    """Return A_auc of (samples seen, accuracy) pairs; NaN where no accuracy is known.

    Each value counts for all samples since the one before it. With evenly spaced values this is the mean of i-Blurry
    (Koh et al., 2022).
    """
    positions, values = np.array(curve, dtype=float).T
    known = ~np.isnan(values)  # NaN where the test set has none of the classes seen so far
    weights = np.diff(positions, prepend=0)[known]
    return float(np.average(values[known], weights=weights)) if known.any() else float("nan")


def metrics(
    after: list[Evaluation], tasks: Tasks, anytime: Sequence[tuple[int, Evaluation]] = ()
) -> dict[str, float | None]:
    """Return the figures of one test set from its evaluations after each task and, for A_auc, at (step, evaluation)."""
    figures: dict[str, float | None] = {
        "A_avg": float(np.mean(accuracy_curve(after))),
        "A_last": accuracy(after[-1]),
        "F_last": forgetting(accuracy_matrix(after, tasks)),
    }
    if anytime:
        figures["A_auc"] = anytime_accuracy([(step, accuracy(groups)) for step, groups in anytime])
    if "follow" in after[-1]:  # at the end of the stream
        figures |= group_accuracies(after[-1]) | {"worst": worst_group(after[-1])}
    return figures
