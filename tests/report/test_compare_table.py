"""The table of a comparison at any width: numbers and verdicts stay whole."""

import itertools
import re
from itertools import pairwise

import numpy as np
import pytest
from rich.console import Console

from droptop.report.compare_table import compare_table
from droptop.report.sentences import readable
from droptop.results.statistics import compare, verdict

FIGURES = ("A_avg", "A_last", "F_last", "follow", "contradict")


def comparison(arms, seeds=5):
    random = np.random.default_rng(2)
    return readable(
        compare(
            {
                arm: {
                    "method": "er",
                    "data": "folder:/a/b/images",
                    "debias": arm,
                    "seeds": list(range(seeds)),
                    "tests": {
                        test: {
                            figure: (50 + 9 * place * (test == "test") + random.normal(size=seeds)).tolist()
                            for figure in FIGURES
                        }
                        for test in ("test", "test-nologo")
                    },
                }
                for place, arm in enumerate(arms)
            }
        )
    )


def printed(found, width):
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as said:
        console.print(compare_table(found, width))
    return said.get()


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120, 140])
@pytest.mark.parametrize("arms", [("none", "droptop"), ("none", "droptop", "robust")])
def test_nothing_is_cut_at_any_width(width, arms):
    found = comparison(arms)
    text = printed(found, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    body = [line for line in text.splitlines() if line[:1] not in "┏┃┡├└"]
    shown = {word for line in body for word in re.split(r"[│\s]+", line)}
    for of_arm in found["effects"].values():
        for tests in of_arm.values():
            for figure, effect in tests.items():
                if len(arms) == 2 or figure == "A_avg":
                    assert f"{effect['diff']:+.1f}" in shown
                    assert len(arms) > 2 or set(verdict(figure, effect).split()) <= shown
    assert "folder:images" in text
    assert "/a/b" not in text


@pytest.mark.parametrize("arms", [("none", "droptop"), ("none", "droptop", "robust")])
def test_an_interval_that_is_cut_is_said_where_intervals_are_shown(arms):
    found = comparison(arms)
    said = "intervals end where accuracy would leave 0 to 100%"
    assert said not in compare_table(found).caption
    summaries = found["arms"]
    for place, seed in itertools.product(range(len(arms)), range(5)):
        summaries[arms[place]]["tests"]["test"]["A_avg"][seed] = 99.9 - place + 40 * (seed == 0) * (place - 1)
    cut = readable(compare(summaries))
    assert cut["effects"]["droptop"]["test"]["A_avg"]["ci95"][1] == pytest.approx(100 - 91.9)
    assert said in compare_table(cut).caption
    assert said not in compare_table(cut, 60).caption  # where there is no room for intervals


def test_what_weighs_least_goes_first():
    found, columns = comparison(("none", "droptop")), []
    for width in (140, 110, 100, 80, 60):
        columns.append([str(column.header) for column in compare_table(found, width).columns])
    assert all(set(narrower) <= set(wider) for wider, narrower in pairwise(columns))
    assert columns[0] == ["test set", "", "none", "droptop", "difference", "95% interval", "p", "p (Holm)", ""]
    assert any("p" not in each and "95% interval" in each for each in columns)
    assert columns[-1] == ["test set", "", "difference", ""]
    assert [str(column.header) for column in compare_table(found).columns] == columns[0]  # where nobody knows the width


def test_errors_go_before_accuracies():
    found, kinds = comparison(("none", "droptop")), []
    for width in range(140, 59, -1):
        cells = {str(column.header): [*column.cells] for column in compare_table(found, width).columns}.get("none")
        kinds.append("gone" if cells is None else "errors" if " ± " in cells[0] else "means")
    assert list(dict.fromkeys(kinds)) == ["errors", "means", "gone"]


@pytest.mark.parametrize("arms", [("none", "droptop"), ("none", "droptop", "robust")])
def test_the_caption_names_only_columns_that_are_there(arms):
    found, seen = comparison(arms), set()
    for width in range(50, 150, 5):
        table = compare_table(found, width)
        headers, said = {str(column.header) for column in table.columns}, str(table.caption)
        assert ("p (Holm)" in said) == ("p (Holm)" in headers)
        assert ("interval" in said) == ("95% interval" in headers)
        assert f"corrected for the number of {'test sets' if len(arms) == 2 else 'arms times test sets'}" in said
        seen.add(("p (Holm)" in headers, "95% interval" in headers))
    assert seen == {(True, True), (False, True), (False, False)}


def test_few_seeds_are_noted_below_a_table():
    for arms in (("none", "droptop"), ("none", "droptop", "robust")):
        assert str(compare_table(comparison(arms, 4)).caption).endswith("; no verdict below 5 seeds")
        assert "verdict" not in str(compare_table(comparison(arms, 5)).caption)


@pytest.mark.parametrize("name", ["p", "verdict", "figure", "difference", "errors", "accuracies"])
def test_an_arm_may_have_the_name_of_a_column(name):
    like, other = comparison(["none", name]), comparison(["none", "robust"])
    for width in (None, 70):
        theirs = [[*column.cells] for column in compare_table(other, width).columns]
        assert [[*column.cells] for column in compare_table(like, width).columns] == theirs
