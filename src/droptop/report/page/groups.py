"""The section of the page that has the accuracy of every group of samples."""

from droptop.report.page import charts
from droptop.report.page.arms import Arm
from droptop.report.page.content import Chart, Row, Section
from droptop.report.page.sections import key_of, spread, tests_of
from droptop.results.metrics import SMALLEST_GROUP, columns_of, groups_in

MOST_GROUPS = 60  # in a chart
COLUMNS = ["test", "column", "group", "arm", "mean", "error", "low", "high", "n"]


def by_group(arms: list[Arm], notes: list[str]) -> Section | None:
    """Return the accuracy of every group at the end, per test set and column of groups."""
    rows: list[Row] = []
    panels: list[tuple[str, str, list[str]]] = []  # test set, column and groups
    done = [arm for arm in arms if arm.done]
    for test in tests_of(done):
        figures = done[0].seeds[done[0].done[0]].figures(test)
        for column in columns_of(figures):
            names = groups_in(figures, column)
            for name in names:
                for arm in done:
                    values = [arm.seeds[seed].figures(test).get(f"{column}={name}") for seed in arm.done]
                    rows.append([test, column, name, arm.name, *spread(values)])
            panels.append((test, column, names))
    edges = [edge for row in rows if row[4] is not None for edge in row[6:8]]
    if not edges:
        return None
    shown = [each for each in panels if len(each[2]) <= MOST_GROUPS]
    if len(shown) < len(panels):
        notes.append(f"Accuracy by group is drawn for columns of up to {MOST_GROUPS} groups; its CSV file has all.")
    drawn = [
        Chart(
            f"Accuracy on {test} by {column}",
            charts.groups(test, column, names, [arm.name for arm in done], (min(edges), max(edges))),
        )
        for test, column, names in shown
    ]
    return Section(
        "groups",
        "Accuracy by group",
        "At the end, over all classes; mean over seeds, and one standard error. The worst group and the gap between it "
        f"and the best, among groups of {SMALLEST_GROUP} samples or more, stand in the table of all figures.",
        COLUMNS,
        rows,
        drawn,
        2,
        key_of(arms),
    )
