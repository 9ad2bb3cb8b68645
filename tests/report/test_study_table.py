"""The table of a study at any width: its numbers stay whole."""

import re

import pytest
from rich.console import Console

from droptop.report.study_table import study_table

BY = ("data", "method", "debias")


def rows(seeds):
    return [
        {"data": "fashion-background", "method": method, "debias": debias, "test": test, "figure": figure}
        | {"n": seeds, "pairs": seeds, "mean": 12.3 + place, "error": 1.4, "p": 0.012, "p_holm": 0.034}
        | ({"diff": None} if debias == "none" else {"diff": -10.6 + place, "low": -20.1, "high": 5.2})
        for place, (method, debias) in enumerate([("er", "none"), ("er", "droptop"), ("derpp", "robust-light")])
        for test in ("biased", "random", "without the cue")
        for figure in ("A_avg", "F_last")
    ]


def printed(width):
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as said:
        console.print(study_table(rows(5), BY, "none", width), crop=False)
    return said.get()


@pytest.mark.parametrize("width", [20, 40, 60, 72, 80, 100, 120, 140, 200])
def test_no_digit_is_cut_at_any_width(width):
    text = printed(width)
    assert "…" not in text
    shown = re.findall(r"[+-]?\d+\.\d", text)
    assert [shown.count(f"{12.3 + place:.1f}") for place in range(3)] == [6, 6, 6]
    assert [shown.count(f"{-10.6 + place:+.1f}") for place in (1, 2)] == [6, 6]
    if width >= 72:
        assert max(map(len, text.splitlines())) <= width
    else:  # a table has a width below which it is of no use, and is then wider
        assert len(set(map(len, text.splitlines()[3:-3]))) == 1


def test_what_weighs_least_goes_first():
    columns = [
        [str(column.header) for column in study_table(rows(5), BY, "none", width).columns] for width in (200, 100, 60)
    ]
    assert columns[0] == [*BY, "test", "", "n", "mean ± error", "to none", "95% interval", "p", "p (Holm)"]
    assert "p (Holm)" in columns[1] or "95% interval" in columns[1]
    assert columns[2] == [*BY, "test", "", "n", "mean ± error", "to none"]


def test_few_seeds_are_noted():
    assert "no verdict below 5 seeds" in study_table(rows(2), BY).caption
    assert "no verdict" not in study_table(rows(5), BY).caption
