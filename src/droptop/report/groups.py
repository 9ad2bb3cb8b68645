"""Accuracy by groups of samples in sentences: which group is the worst, and how far it is from the best."""

from collections.abc import Mapping
from typing import Any

from droptop.report.tables import mean_error
from droptop.results.metrics import GAP, WORST, columns_of, worst_name


def group_lines(arms: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return a sentence per test set and column of groups, from the summaries of arms by name; none without groups."""
    first = next(iter(arms.values()))
    return [
        f"{test}: worst {column} {', '.join(worst_of(arm, arms[arm]['tests'][test], column) for arm in arms)}"
        for test, figures in first["tests"].items()
        for column in columns_of(figures)
    ]


def worst_of(arm: str, figures: dict[str, list[float | None]], column: str) -> str:
    """Return an arm's accuracy on its worst group, the name of that group, and the gap to the best, as text."""
    name = worst_name(figures, column)
    about = arm if name is None else f"{arm}, {name}"
    return f"{mean_error(figures[WORST + column])} ({about}; gap {mean_error(figures[GAP + column])})"
