"""What figures and statistics give at their limits: the smallest group that counts, p at its threshold, nothing."""

import math

import pytest

from droptop.results.metrics import accuracy, accuracy_matrix, anytime_accuracy, metrics, worst_group
from droptop.results.statistics import compare, holm, paired_effect, verdict


def tally(correct, n):
    return {"n": n, "correct": correct}


def test_a_group_of_five_counts_and_one_of_four_does_not():
    assert worst_group({"follow": tally([4, 1], [5, 5])}) == 20
    assert worst_group({"follow": tally([4, 0], [5, 4])}) == 80
    assert worst_group({"follow": tally([4, 0], [4, 4])}) is None


def test_where_nothing_was_measured_there_is_no_figure():
    assert math.isnan(accuracy({"all": tally([0, 0], [0, 0])}))
    assert math.isnan(anytime_accuracy([(10, math.nan), (20, math.nan)]))
    figures = metrics([{"follow": tally([3, 4], [10, 10]), "contradict": tally([0, 0], [0, 0])}], ((0, 1),))
    assert figures["follow"] == pytest.approx(35)
    assert figures["contradict"] is None
    assert figures["F_last"] is None
    one = metrics([{"follow": tally([1, 0], [1, 0]), "contradict": tally([0, 0], [0, 1])}], ((0, 1),))
    assert (one["follow"], one["contradict"]) == (
        100,
        0,
    )  # a single sample is no group that counts, but has an accuracy
    assert one["worst"] is None


def test_a_task_of_which_nothing_is_right_has_an_accuracy_of_0():
    """None means that it was not seen; a matrix that confuses the two hides complete forgetting."""
    after = [{"all": tally([9, 0], [10, 0])}, {"all": tally([0, 10], [10, 10])}]
    assert accuracy_matrix(after, ((0,), (1,))) == [[90, None], [0, 100]]
    assert metrics(after, ((0,), (1,)))["F_last"] == 90


def test_equal_differences_have_no_interval_but_those_of_equal_arms():
    nothing = {"ci95": None, "p": None, "least": None}
    assert paired_effect([1.0, 2.0], [1.5, 2.5]) == {"diff": 0.5, "n": 2} | nothing
    equal = {"diff": 0.0, "ci95": [0.0, 0.0], "p": 1.0, "n": 2, "least": None}
    assert paired_effect([1.0, 2.0], [1.0, 2.0]) == equal


def test_verdicts_at_their_limits():
    def judged(diff, p, n):
        return verdict("A_avg", {"diff": diff, "ci95": None, "p": p, "n": n, "least": None})

    assert judged(None, None, 0) == "not measured"
    assert judged(2.0, 0.05, 5) == "no significant difference"
    assert judged(-2.0, 0.049, 5) == "worse"
    assert judged(-2.0, 1e-9, 4) == "points to worse"  # a verdict takes five seeds
    assert judged(2.0, 0.499, 2) == "points to better"  # of two seeds, both are above 0
    assert judged(2.0, 0.501, 2) == "no clear direction"  # one of them is below it


def test_a_corrected_p_is_at_most_1():
    assert holm([0.6, 0.9]) == [1.0, 1.0]


def test_an_arm_is_compared_with_the_plain_one_of_its_own_cost():
    def arm(*values):
        return {"tests": {"t": {"A_avg": list(values)}}}

    arms = {"none": arm(10.0, 20.0), "ours": arm(15.0, 26.0), "equal-ours": arm(12.0, 25.0), "theirs": arm(9.0, 18.0)}
    result = compare(arms)
    assert {name: tests["t"]["A_avg"]["diff"] for name, tests in result["effects"].items()} == {
        "ours": 5.5,
        "equal-ours": 3.5,
        "theirs": -1.5,
    }
    assert result["at_equal_cost"].keys() == {"ours"}
    assert result["at_equal_cost"]["ours"]["t"]["A_avg"]["diff"] == 2.0
    assert "at_equal_cost" not in compare({"none": arms["none"], "ours": arms["ours"]})
