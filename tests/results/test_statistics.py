import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from droptop.results.statistics import compare, estimate, holm, paired_effect, standard_error, verdict


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=2, max_size=20))
def test_paired_effects_are_those_of_scipy(pairs):
    plain, debiased = ([pair[i] for pair in pairs] for i in (0, 1))
    effect = paired_effect(plain, debiased)
    differences = np.subtract(debiased, plain)
    assert effect["diff"] == pytest.approx(differences.mean())
    if differences.std() > 1e-6:
        expected = stats.ttest_rel(debiased, plain)
        assert effect["p"] == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
        assert effect["ci95"] == pytest.approx(list(expected.confidence_interval(0.95)), rel=1e-6, abs=1e-9)


@given(st.lists(st.lists(st.floats(-100, 100), min_size=3, max_size=3), min_size=2, max_size=12))
def test_standard_errors_are_those_of_scipy(rows):
    """Of every column: over the first axis, which holds the seeds."""
    values = np.array(rows)
    assert standard_error(values) == pytest.approx(stats.sem(values, axis=0), abs=1e-9)
    assert standard_error(values[:, 0]) == pytest.approx(stats.sem(values[:, 0]), abs=1e-9)


def test_estimates_leave_out_what_is_not_known():
    assert estimate([1.0, None, 3.0, float("nan"), 8.0]) == (pytest.approx(4), pytest.approx(stats.sem([1, 3, 8])), 3)
    assert estimate([None, 2.0]) == (2.0, None, 1)
    assert estimate([None, float("nan")]) == estimate([]) == (None, None, 0)


def test_pairs_with_a_value_missing_are_left_out():
    effect = paired_effect([50.0, None, 60.0, 55.0], [53.0, 40.0, None, 60.0])
    assert effect["diff"] == 4.0
    assert effect["p"] == pytest.approx(stats.ttest_rel([53.0, 60.0], [50.0, 55.0]).pvalue)
    with pytest.raises(ValueError, match="shorter"):  # seeds of unequal number are no pairs
        paired_effect([1.0, 2.0], [1.0])


def test_one_seed_has_no_interval():
    assert paired_effect([50.0], [53.0]) == {"diff": 3.0, "ci95": None, "p": None}


def test_equal_differences_have_a_p_value_of_0_or_1():
    assert paired_effect([1.0, 2.0], [1.0, 2.0])["p"] == 1.0
    assert paired_effect([1.0, 2.0], [2.0, 3.0])["p"] == 0.0
    assert paired_effect([None, None], [None, None])["diff"] is None


def test_verdicts_go_by_p_value_and_direction():
    assert verdict("A_avg", {"diff": 2.0, "ci95": [1, 3], "p": 0.01}) == "better"
    assert verdict("F_last", {"diff": 2.0, "ci95": [1, 3], "p": 0.01}) == "worse"
    assert verdict("F_last", {"diff": -2.0, "ci95": [-3, -1], "p": 0.01}) == "better"
    assert verdict("A_avg", {"diff": 2.0, "ci95": [-1, 5], "p": 0.2}) == "no significant difference"
    assert "one seed" in verdict("A_avg", {"diff": 2.0, "ci95": None, "p": None})


def test_compare_leaves_curves_out():
    def arm(debias, values):
        return {"debias": debias, "tests": {"t": {"A_avg": values, "A": [[1]], "matrix": [[[1]]]}}}

    result = compare({"none": arm("none", [50.0, 60.0]), "ours": arm("droptop", [55.0, 67.0])})
    assert list(result["arms"]) == ["none", "ours"]
    assert result["effects"]["ours"]["t"].keys() == {"A_avg"}
    assert result["effects"]["ours"]["t"]["A_avg"]["diff"] == 6.0


def test_verdicts_go_by_p_values_corrected_for_the_number_of_test_sets():
    def arm(debias, values):
        return {
            "debias": debias,
            "tests": {
                test: {"A_avg": own} | ({"contradict": own} if test == "b" else {}) for test, own in values.items()
            },
        }

    plain = {"a": [50.0, 60.0, 55.0], "b": [50.0, 60.0, 55.0], "c": [50.0, 60.0, 55.0]}
    better = {"a": [51.0, 61.1, 56.2], "b": [52.0, 63.0, 56.5], "c": [49.0, 62.0, 56.0]}
    effects = compare({"none": arm("none", plain), "droptop": arm("droptop", better)})["effects"]["droptop"]
    ps = {test: stats.ttest_rel(better[test], plain[test]).pvalue for test in plain}
    assert ps["a"] < ps["b"] < 0.05 < ps["c"]
    assert effects["a"]["A_avg"]["p_holm"] == pytest.approx(3 * ps["a"])
    assert effects["b"]["A_avg"]["p_holm"] == pytest.approx(2 * ps["b"])
    assert effects["b"]["contradict"]["p_holm"] == pytest.approx(ps["b"])  # the only set that has it
    assert verdict("A_avg", effects["a"]["A_avg"]) == "better"
    assert verdict("A_avg", effects["b"]["A_avg"]) == "no significant difference"  # though p itself is below 0.05


def test_holm_by_hand():
    assert holm([0.01, None, 0.04, 0.03]) == [pytest.approx(0.03), None, pytest.approx(0.06), pytest.approx(0.06)]
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
