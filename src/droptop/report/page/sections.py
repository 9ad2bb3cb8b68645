"""The sections of the page of a run or a comparison, each made by one function.

Such a function takes the arms and returns a section, or None where there is nothing to draw. What it leaves out to keep
the page small, it adds to `notes`.
"""

from collections.abc import Iterable

import numpy as np

from droptop.report.page import charts
from droptop.report.page.arms import Arm
from droptop.report.page.attention import attention_on_shortcut
from droptop.report.page.content import Chart, Row, Section
from droptop.report.tables import counted
from droptop.results.series import kappa_series, shortcut_series, window_of
from droptop.results.statistics import estimate

MOST_ACROSS = 4  # panels side by side
MOST_CONFUSED = 30  # classes, or else tasks, in a confusion matrix
MOST_TASKS = 40  # rows of a matrix of accuracies
MOST_STRIPS = 3000  # pieces of kappa's strips, of all classes
MOST_POINTS = 400  # per curve over steps
SPREAD = ["test", "arm", "task", "mean", "error", "low", "high", "n"]


def spread(values: Iterable[float | None]) -> Row:
    """Return mean, standard error, mean minus and plus that, and how many values there are."""
    mean, error, n = estimate(values)
    if mean is None:
        return [None, None, None, None, 0]
    error = error or 0.0
    return [*(round(value, 3) for value in (mean, error, mean - error, mean + error)), n]


def evenly(count: int, most: int) -> list[int]:
    """Return at most `most` of `count` indices, evenly spaced, with the first and the last among them."""
    return sorted({int(place) for place in np.linspace(0, count - 1, min(most, count)).round()})


def tests_of(arms: list[Arm]) -> list[str]:
    """Return the test sets, in the stream's order."""
    return next((arm.tests for arm in arms if arm.tests), [])


def columns_of(arms: list[Arm]) -> int:
    """Return how many panels stand side by side: one per test set, where there are few."""
    return min(max(len(tests_of(arms)), 2), MOST_ACROSS)


def panels(arms: list[Arm]) -> list[tuple[Arm, str]]:
    """Return every arm and test set in the order of their panels.

    Each arm has a row of panels or, where there are many test sets, each test set has all arms side by side.
    """
    tests = tests_of(arms)
    if len(tests) <= MOST_ACROSS:
        return [(arm, test) for arm in arms for test in tests]
    return [(arm, test) for test in tests for arm in arms]


def key_of(arms: list[Arm]) -> dict[str, str]:
    """Return the colour of every arm."""
    names = [arm.name for arm in arms]
    return {name: charts.colour_of(name, names) for name in names}


def accuracy(arms: list[Arm], notes: list[str]) -> Section | None:
    """Return the accuracy after each task."""
    rows: list[Row] = []
    for test in tests_of(arms):
        for arm in arms:
            curves = [seed.curve(test) for seed in arm.seeds.values() if seed.tests]
            for task in range(max(map(len, curves), default=0)):
                rows.append([test, arm.name, task + 1, *spread(curve[task] for curve in curves if task < len(curve))])
    if not rows:
        return None
    edges = [edge for row in rows if row[3] is not None for edge in row[5:7]]
    tasks = max(row[2] for row in rows)
    drawn = [
        Chart(
            f"Accuracy on {test} after each task",
            charts.curves(test, [arm.name for arm in arms], tasks, min(edges), max(edges)),
        )
        for test in tests_of(arms)
    ]
    return Section(
        "accuracy",
        "Accuracy after each task",
        "Over all classes seen so far, predicted among them; mean over seeds, in a band of one standard error.",
        SPREAD,
        rows,
        drawn,
        columns_of(arms),
        key_of(arms),
    )


def matrices(arms: list[Arm], notes: list[str]) -> Section | None:
    """Return the accuracy after each task on each task so far."""
    rows: list[Row] = []
    drawn = []
    for arm, test in panels(arms):
        known = [seed.matrix(test) for seed in arm.seeds.values() if seed.tests and seed.tasks]
        after = max(map(len, known), default=0)
        kept = evenly(after, MOST_TASKS)
        for i in kept:
            for j in kept[: kept.index(i) + 1]:
                mean = spread(matrix[i][j] for matrix in known if i < len(matrix))[0]
                rows += [] if mean is None else [[test, arm.name, i + 1, j + 1, round(mean, 1)]]
        if after:
            drawn.append(
                Chart(
                    f"Accuracy of {arm.name} on each task of {test} after each task",
                    charts.accuracy_matrix(arm.name, test, len(kept)),
                )
            )
    if any(max(row[2:4]) > MOST_TASKS for row in rows):
        notes.append("Accuracy on every task is shown for some of the tasks, evenly spaced.")
    return (
        Section(
            "matrices",
            "Accuracy on every task",
            "After each task (down), on each task so far (across); mean over seeds, percent.",
            ["test", "arm", "after", "on", "percent"],
            rows,
            drawn,
            columns_of(arms),
        )
        if rows
        else None
    )


def confusions(arms: list[Arm], notes: list[str]) -> Section | None:
    """Return what is taken for what after the last task that all seeds have finished: classes or, of many, tasks."""
    rows: list[Row] = []
    drawn = []
    for arm, test in panels(arms):
        last = [seed.confusion[-1] for seed in arm.seeds.values() if seed.confusion]
        last = [confusion for confusion in last if confusion.task == min(other.task for other in last)]
        if not last:
            continue
        names = last[0].classes
        many = len(names) > MOST_CONFUSED
        if many:
            names = [f"task {task + 1}" for task in range(len(last[0].tasks))]
        if len(names) > MOST_CONFUSED:
            continue
        by_seed = [(confusion.counts[test], confusion.tasks) for confusion in last]
        counts = np.sum([by_task(counts, tasks) if many else counts for counts, tasks in by_seed], 0)
        tested = [place for place in range(len(names)) if counts[place].any()]
        shares = 100 * counts / np.maximum(counts.sum(1, keepdims=True), 1)
        rows += [
            [test, arm.name, names[i], names[j], int(counts[i, j]), round(float(shares[i, j]), 1)]
            for i in tested
            for j in tested
        ]
        drawn.append(
            Chart(
                f"What {arm.name} takes {test} for",
                charts.confusion_matrix(arm.name, test, [names[place] for place in tested]),
            )
        )
    classes = max((len(seed.classes) for arm in arms for seed in arm.seeds.values()), default=0)
    if classes > MOST_CONFUSED:
        notes.append(
            "Confusion is shown between tasks, since there are many classes."
            if rows
            else "Confusion is left out, since there are many classes and tasks."
        )
    return (
        Section(
            "confusion",
            "What is taken for what",
            "True class down, prediction across, percent of the true class, all seeds together, after the last task "
            "finished.",
            ["test", "arm", "true", "predicted", "count", "percent"],
            rows,
            drawn,
            columns_of(arms),
        )
        if rows
        else None
    )


def by_task(counts: np.ndarray, tasks: list[list[int]]) -> np.ndarray:
    """Return the counts between tasks, from those between classes."""
    return np.array([[counts[np.ix_(true, predicted)].sum() for predicted in tasks] for true in tasks])


def forgotten(arms: list[Arm], notes: list[str]) -> Section | None:
    """Return how much is forgotten of each task at the end."""
    rows: list[Row] = []
    for test in tests_of(arms):
        for arm in arms:
            known = [seed.matrix(test) for seed in arm.seeds.values() if seed.result and len(seed.tasks) > 1]
            tasks = min(map(len, known), default=1)
            for task in range(tasks - 1):
                rows.append([test, arm.name, task + 1, *spread(lost(matrix, task) for matrix in known)])
    edges = [edge for row in rows if row[3] is not None for edge in row[5:7]]
    if not edges:
        return None
    drawn = [
        Chart(
            f"Points forgotten on each task of {test}",
            charts.forgetting(test, [arm.name for arm in arms], min(edges), max(edges)),
        )
        for test in tests_of(arms)
    ]
    return Section(
        "forgetting",
        "Forgetting",
        "The best accuracy on a task before the last one, minus that at the end; mean over seeds and one standard "
        "error.",
        SPREAD,
        rows,
        drawn,
        columns_of(arms),
        key_of(arms),
    )


def lost(matrix: list[list[float | None]], task: int) -> float | None:
    """Return how much is forgotten of a task, f_{T,j} in the paper; None where it was not measured."""
    *before, last = [row[task] for row in matrix]
    best = [value for value in before if value is not None]
    return None if last is None or not best else max(best) - last


def intensities(arms: list[Arm], notes: list[str]) -> Section | None:
    """Return kappa' over the training of the first seed of the first arm that adapts it."""
    arm = next((arm for arm in arms if arm.run.adapts), None)
    seeds = arm.seeds.values() if arm else ()
    seed = next((seed for seed in seeds if seed.tasks and seed.lines), None)
    if arm is None or seed is None:
        return None
    run = arm.run
    curves = kappa_series(run.start, run.per_class, seed.classes, seed.tasks, seed.lines)
    most = max(2, MOST_STRIPS // max(len(curves), 1))
    if any(len(steps) - 1 > most for steps, _ in curves.values()):
        notes.append("kappa' is thinned out: decisions that follow each other closely are drawn as one.")
    rows: list[Row] = []
    for name, (steps, values) in curves.items():
        kept = evenly(len(steps) - 1, most)
        for before, place, after in zip([0, *kept], kept, [*kept[1:], len(steps) - 1]):
            change = values[place] - values[before]
            decision = "up" if change > 0 else "down" if change < 0 else ""
            rows.append([name, steps[place], steps[after], round(values[place], 4), decision])
    names = sorted(curves, key=lambda name: curves[name][0][0])
    lowest, decided = min((row[3] for row in rows), default=0.0), any(row[4] for row in rows)
    about = "How much is dropped by attention, for each class over time"
    return Section(
        "kappa",
        "How much is dropped",
        f"kappa', the percentage of a class's map that is dropped by attention (at most {run.gamma:g}), of one seed of "
        f"{arm.name}; a triangle where the method decided to raise or lower it.",
        ["class", "step", "until", "kappa", "decision"],
        rows,
        [Chart(about, charts.kappa(names, lowest, run.gamma, decided))],
    )


def thinned(steps: np.ndarray, values: np.ndarray) -> Iterable[tuple[int, float]]:
    """Return at most MOST_POINTS points of a curve, evenly spaced."""
    return ((int(steps[place]), round(float(values[place]), 3)) for place in evenly(len(steps), MOST_POINTS))


def dropped_on_shortcut(arms: list[Arm], notes: list[str]) -> Section | None:
    """Return which share of the dropped cells lies on the shortcut, over training, and which would by chance.

    Of the first arm that drops any.
    """
    for arm in arms:
        begun = list(arm.seeds.values())
        chosen = [seed for seed in begun if seed.result] or begun  # the mean ends where the shortest seed does
        if seeds := [seed.lines for seed in chosen if any("dropped" in line for line in seed.lines)]:
            break
    else:
        return None
    series = {"dropped cells on the shortcut": "share", "by chance": "chance"}
    rows: list[Row] = [
        [name, *point] for name, which in series.items() for point in thinned(*shortcut_series(seeds, which))
    ]
    chart = charts.lines(dict(zip(series, ("var(--debiased)", "var(--plain)"))), "percent of dropped cells")
    return Section(
        "shortcut",
        "Is it the shortcut that is dropped?",
        f"Share of the cells dropped by {arm.name} in training that lie on the shortcut, against cells chosen at "
        f"random; mean over {counted(len(seeds), 'seed')} and {counted(window_of(seeds), 'step')}.",
        ["series", "step", "percent"],
        rows,
        [Chart("Share of dropped cells on the shortcut over training", chart)],
    )


def attended(arms: list[Arm], notes: list[str]) -> Section | None:
    """Return which share of the most attended cells lies on the shortcut, over training, per arm."""
    rows: list[Row] = []
    colours = {}
    for arm in arms:
        if arm.maps is not None and (points := attention_on_shortcut(arm.maps)):
            rows += [[arm.name, *point] for point in points]
            colours[arm.name] = key_of(arms)[arm.name]
            chance = 100 * float(arm.maps.shortcut.mean()) if arm.maps.shortcut is not None else 0.0
    if not rows:
        return None
    return Section(
        "attention",
        "Is it the shortcut that is looked at?",
        "Of the 5% of cells that the model attends to most, the share that lies on the shortcut "
        f"({chance:.1f}% would by chance); test images of one seed.",
        ["series", "step", "percent"],
        rows,
        [Chart("Attention on the shortcut over training", charts.lines(colours, "percent of top cells", few=True))],
    )
