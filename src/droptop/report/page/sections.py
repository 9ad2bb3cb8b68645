"""The charts of a run or a comparison, a function each: what the arms hold -> a section, or None where there is nothing
to draw. What is left out to keep the page small goes into `notes`.
"""

from collections.abc import Iterable

import numpy as np

from droptop.report.page import charts
from droptop.report.page.answer import counted
from droptop.report.page.arms import Arm
from droptop.report.page.attention import attention_on_shortcut
from droptop.report.page.content import Chart, Row, Section
from droptop.results.series import WINDOW, kappa_series, shortcut_series
from droptop.results.statistics import estimate

MOST_ACROSS = 4  # panels
MOST_CONFUSED = 30  # classes with a row of their own; of more, the page shows tasks
MOST_TASKS = 40  # rows of a matrix of accuracies
MOST_STRIPS = 3000  # pieces of kappa's strips
MOST_POINTS = 400  # of a curve over steps
SPREAD = ["test", "arm", "task", "mean", "error", "low", "high", "n"]


def spread(values: Iterable[float | None]) -> Row:
    """Return mean, standard error, both edges of it, and how many values there are."""
    mean, error, n = estimate(values)
    if mean is None:
        return [None, None, None, None, 0]
    error = error or 0.0
    return [*(round(value, 3) for value in (mean, error, mean - error, mean + error)), n]


def evenly(count: int, most: int) -> list[int]:
    """At most so many places of `count`, evenly spaced, the first and the last among them."""
    return sorted({int(place) for place in np.linspace(0, count - 1, min(most, count)).round()})


def tests_of(both: list[Arm]) -> list[str]:
    return next((arm.tests for arm in both if arm.tests), [])


def columns_of(both: list[Arm]) -> int:
    """Panels beside each other: a test set each, where these are few."""
    return min(max(len(tests_of(both)), 2), MOST_ACROSS)


def panels(both: list[Arm]) -> list[tuple[Arm, str]]:
    """Every arm and test set, in the order of their panels: an arm's in a row or, of many test sets, both arms' beside
    each other."""
    tests = tests_of(both)
    if len(tests) <= MOST_ACROSS:
        return [(arm, test) for arm in both for test in tests]
    return [(arm, test) for test in tests for arm in both]


def key_of(both: list[Arm]) -> dict[str, str]:
    return {arm.name: charts.colour_of(arm.name) for arm in both}


def accuracy(both: list[Arm], notes: list[str]) -> Section | None:
    rows: list[Row] = []
    for test in tests_of(both):
        for arm in both:
            curves = [own.curve(test) for own in arm.seeds.values() if own.tests]
            for task in range(max(map(len, curves), default=0)):
                rows.append([test, arm.name, task + 1, *spread(curve[task] for curve in curves if task < len(curve))])
    if not rows:
        return None
    edges = [edge for row in rows if row[3] is not None for edge in row[5:7]]
    tasks = max(row[2] for row in rows)
    found = [
        Chart(
            f"Accuracy on {test} after each task",
            charts.curves(test, [arm.name for arm in both], tasks, min(edges), max(edges)),
        )
        for test in tests_of(both)
    ]
    return Section(
        "accuracy",
        "Accuracy after each task",
        "Over all classes seen so far, predicted among them; mean over seeds, in a band of one standard error.",
        SPREAD,
        rows,
        found,
        columns_of(both),
        key_of(both),
    )


def matrices(both: list[Arm], notes: list[str]) -> Section | None:
    rows: list[Row] = []
    found = []
    for arm, test in panels(both):
        known = [own.matrix(test) for own in arm.seeds.values() if own.tests and own.tasks]
        after = max(map(len, known), default=0)
        kept = evenly(after, MOST_TASKS)
        for i in kept:
            for j in kept[: kept.index(i) + 1]:
                mean = spread(matrix[i][j] for matrix in known if i < len(matrix))[0]
                rows += [] if mean is None else [[test, arm.name, i + 1, j + 1, round(mean, 1)]]
        if after:
            found.append(
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
            found,
            columns_of(both),
        )
        if rows
        else None
    )


def confusions(both: list[Arm], notes: list[str]) -> Section | None:
    """What is taken for what after the last task that all seeds have finished: classes or, where there are many,
    tasks."""
    rows: list[Row] = []
    found = []
    for arm, test in panels(both):
        last = [own.confusion[-1] for own in arm.seeds.values() if own.confusion]
        last = [own for own in last if own.task == min(other.task for other in last)]
        if not last:
            continue
        names = last[0].classes
        many = len(names) > MOST_CONFUSED
        if many:
            names = [f"task {task + 1}" for task in range(len(last[0].tasks))]
        if len(names) > MOST_CONFUSED:
            continue
        counts = np.sum([by_task(own.counts[test], own.tasks) if many else own.counts[test] for own in last], 0)
        there = [place for place in range(len(names)) if counts[place].any()]
        shares = 100 * counts / np.maximum(counts.sum(1, keepdims=True), 1)
        rows += [
            [test, arm.name, names[i], names[j], int(counts[i, j]), round(float(shares[i, j]), 1)]
            for i in there
            for j in there
        ]
        found.append(
            Chart(
                f"What {arm.name} takes {test} for",
                charts.confusion_matrix(arm.name, test, [names[place] for place in there]),
            )
        )
    classes = max((len(own.classes) for arm in both for own in arm.seeds.values()), default=0)
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
            "True class down, prediction across, percent of the true "
            "class, all seeds together, after the last task finished.",
            ["test", "arm", "true", "predicted", "count", "percent"],
            rows,
            found,
            columns_of(both),
        )
        if rows
        else None
    )


def by_task(counts: np.ndarray, tasks: list[list[int]]) -> np.ndarray:
    """Counts between tasks from those between classes."""
    return np.array([[counts[np.ix_(true, predicted)].sum() for predicted in tasks] for true in tasks])


def forgotten(both: list[Arm], notes: list[str]) -> Section | None:
    rows: list[Row] = []
    for test in tests_of(both):
        for arm in both:
            known = [own.matrix(test) for own in arm.seeds.values() if own.result and len(own.tasks) > 1]
            tasks = min(map(len, known), default=1)
            for task in range(tasks - 1):
                rows.append([test, arm.name, task + 1, *spread(lost(matrix, task) for matrix in known)])
    edges = [edge for row in rows if row[3] is not None for edge in row[5:7]]
    if not edges:
        return None
    found = [
        Chart(
            f"Points forgotten on each task of {test}",
            charts.forgetting(test, [arm.name for arm in both], min(edges), max(edges)),
        )
        for test in tests_of(both)
    ]
    return Section(
        "forgetting",
        "Forgetting",
        "The best accuracy on a task before the last one, minus that at the "
        "end; mean over seeds and one standard error.",
        SPREAD,
        rows,
        found,
        columns_of(both),
        key_of(both),
    )


def lost(matrix: list[list[float | None]], task: int) -> float | None:
    """f_T,j of a task."""
    *before, last = [row[task] for row in matrix]
    best = [value for value in before if value is not None]
    return None if last is None or not best else max(best) - last


def intensities(both: list[Arm], notes: list[str]) -> Section | None:
    """kappa' of the first seed of the debiased arm."""
    arm = both[-1]
    own = next((own for own in arm.seeds.values() if own.tasks and own.lines), None)
    run = arm.run
    if own is None or not run.adapts:
        return None
    curves = kappa_series(run.start, run.per_class, own.classes, own.tasks, own.lines)
    most = max(2, MOST_STRIPS // max(len(curves), 1))
    if any(len(steps) - 1 > most for steps, _ in curves.values()):
        notes.append("kappa' is thinned out: decisions that follow each other closely are drawn as one.")
    rows: list[Row] = []
    for name, (steps, values) in curves.items():
        kept = evenly(len(steps) - 1, most)
        for before, place, after in zip([0, *kept], kept, [*kept[1:], len(steps) - 1]):
            change = values[place] - values[before]
            rows.append(
                [
                    name,
                    steps[place],
                    steps[after],
                    round(values[place], 4),
                    "up" if change > 0 else "down" if change < 0 else "",
                ]
            )
    names = sorted(curves, key=lambda name: curves[name][0][0])
    lowest, decided = min((row[3] for row in rows), default=0.0), any(row[4] for row in rows)
    about = "How much is dropped by attention, for each class over time"
    return Section(
        "kappa",
        "How much is dropped",
        "kappa', the percentage of a class's map that is dropped by "
        f"attention (at most {run.gamma:g}), of one seed; a triangle where the method decided to raise "
        "or lower it.",
        ["class", "step", "until", "kappa", "decision"],
        rows,
        [Chart(about, charts.kappa(names, lowest, run.gamma, decided))],
    )


def thinned(steps: np.ndarray, values: np.ndarray) -> Iterable[tuple[int, float]]:
    return ((int(steps[place]), round(float(values[place]), 3)) for place in evenly(len(steps), MOST_POINTS))


def dropped_on_shortcut(both: list[Arm], notes: list[str]) -> Section | None:
    begun = list(both[-1].seeds.values())
    chosen = [own for own in begun if own.result] or begun  # the mean goes as far as the shortest
    seeds = [own.lines for own in chosen if any("dropped" in line for line in own.lines)]
    if not seeds:
        return None
    series = {"dropped cells on the shortcut": "share", "by chance": "chance"}
    rows: list[Row] = [
        [name, *point] for name, which in series.items() for point in thinned(*shortcut_series(seeds, which))
    ]
    chart = charts.lines(dict(zip(series, ("var(--debiased)", "var(--plain)"))), "percent of dropped cells")
    return Section(
        "shortcut",
        "Is it the shortcut that is dropped?",
        "Share of the cells dropped in training that lie "
        f"on the shortcut, against cells chosen at random; mean over {counted(len(seeds), 'seed')} and "
        f"{WINDOW} steps.",
        ["series", "step", "percent"],
        rows,
        [Chart("Share of dropped cells on the shortcut over training", chart)],
    )


def attended(both: list[Arm], notes: list[str]) -> Section | None:
    rows: list[Row] = []
    colours = {}
    for arm in both:
        if arm.maps is not None and (points := attention_on_shortcut(arm.maps)):
            rows += [[arm.name, *point] for point in points]
            colours[arm.name] = charts.colour_of(arm.name)
            chance = 100 * float(arm.maps.shortcut.mean()) if arm.maps.shortcut is not None else 0.0
    if not rows:
        return None
    return Section(
        "attention",
        "Is it the shortcut that is looked at?",
        "Of the 5% of cells that the model attends to "
        f"most, the share that lies on the shortcut ({chance:.1f}% would by chance); test images of one "
        "seed.",
        ["series", "step", "percent"],
        rows,
        [Chart("Attention on the shortcut over training", charts.lines(colours, "percent of top cells", few=True))],
    )
