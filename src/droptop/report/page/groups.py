"""The section of the page that has the accuracy of every group of samples."""

from droptop.report.page import charts
from droptop.report.page.arms import Arm
from droptop.report.page.content import Chart, Row, Section
from droptop.report.page.sections import MOST_ACROSS, key_of, spread, tests_of
from droptop.results.metrics import SMALLEST_GROUP, columns_of, groups_in

MOST_GROUPS = 60  # in a chart
COLUMNS = ["test", "column", "group", "arm", "mean", "error", "low", "high", "n"]


def by_group(arms: list[Arm], notes: list[str]) -> Section | None:
    """Return the accuracy of every group at the end, per test set and column of groups."""
    rows: list[Row] = []
    drawn = []
    done = [arm for arm in arms if arm.done]
    for test in tests_of(done):
        figures = done[0].seeds[done[0].done[0]].figures(test)
        for column in columns_of(figures):
            names = groups_in(figures, column)
            for name in names:
                for arm in done:
                    values = [arm.seeds[seed].figures(test).get(f"{column}={name}") for seed in arm.done]
                    rows.append([test, column, name, arm.name, *spread(values)])
            if len(names) > MOST_GROUPS:
                notes.append(f"Accuracy by {column} is not drawn: it has {len(names)} groups.")
                continue
            about = f"Accuracy on {test} by {column}"
            drawn.append(Chart(about, charts.groups(test, column, names, [arm.name for arm in done])))
    if not rows:
        return None
    return Section(
        "groups",
        "Accuracy by group",
        "At the end, over all classes; mean over seeds, and one standard error. The worst group and the gap between it "
        f"and the best, among groups of {SMALLEST_GROUP} samples or more, stand in the table of all figures.",
        COLUMNS,
        rows,
        drawn,
        min(max(len(drawn), 1), MOST_ACROSS, 2),
        key_of(arms),
    )
