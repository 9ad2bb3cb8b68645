import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from droptop.report.sentences import answer, ranked, readable
from droptop.results.statistics import (
    compare,
    estimate,
    holm,
    is_significant,
    least_effect,
    paired_effect,
    standard_error,
    verdict,
    within_possible,
)


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
    assert paired_effect([50.0], [53.0]) == {"diff": 3.0, "ci95": None, "p": None, "n": 1, "least": None}


def test_differences_without_a_spread_have_no_p_value():
    """But for rounding: 60.1 + 0.3 and the like differ in the last digit, of which a t-test would be very sure."""
    plain = [60.1, 0.7, 59.3, 7.9, 8.2]
    rounded = [value + 0.3 for value in plain]
    assert np.ptp(np.subtract(rounded, plain)) > 0
    effect = paired_effect(plain, rounded)
    assert (effect["ci95"], effect["p"], effect["least"]) == (None, None, None)
    assert effect["diff"] == pytest.approx(0.3)
    assert verdict("A_avg", effect) == "the same in every seed: cannot tell"
    assert verdict("F_last", paired_effect(plain[:3], rounded[:3])) == "points to worse"
    known = paired_effect(plain, [value + 1e-6 for value in rounded[:4]] + rounded[4:])
    assert known["p"] is not None
    assert known["p"] < 0.001
    assert paired_effect([1.0, 2.0], [1.0, 2.0])["p"] == 1.0
    assert paired_effect([None, None], [None, None])["diff"] is None


def test_verdicts_go_by_p_value_and_direction():
    def judged(figure, diff, p, **more):
        return verdict(figure, {"diff": diff, "ci95": None, "p": p, "n": 5, "least": None} | more)

    assert judged("A_avg", 2.0, 0.01) == "better"
    assert judged("F_last", 2.0, 0.01) == "worse"
    assert judged("F_last", -2.0, 0.01) == "better"
    assert judged("A_avg", 2.0, 0.2) == "no significant difference"
    assert judged("F_last", -2.0, 0.01, n=4) == "points to better"
    assert "one seed" in judged("A_avg", 2.0, None, n=1)


@pytest.mark.parametrize(("n", "spread"), [(2, 1.2e-7), (100, 0.8e-7)])
def test_the_spread_that_is_none_is_less_than_a_billionth_of_the_largest_value(n, spread):
    """The spread of the differences, whatever their number: 1e-7 where values go up to 100."""
    halves = spread * np.sqrt((n - 1) / n) * (-1.0) ** np.arange(n)  # their standard deviation is `spread`
    plain = np.array([100.0, *[0.0] * (n - 1)])
    effect = paired_effect(plain.tolist(), (plain - 0.01 + halves).tolist())
    assert (effect["p"] is None) == (spread < 1e-7)


def test_arms_in_which_all_is_0_are_equal():
    assert paired_effect([0.0, 0.0], [0.0, 0.0])["p"] == 1.0


@pytest.mark.parametrize(
    ("figure", "p", "n", "significant"),
    [("A_avg", 0.01, 5, True), ("F_last", 0.01, 5, True), ("A_avg", 0.2, 5, False), ("A_avg", 0.01, 4, False)],
)
def test_an_effect_is_significant_where_a_verdict_says_better_or_worse(figure, p, n, significant):
    effect = {"diff": 2.0, "ci95": None, "p": p, "n": n, "least": None}
    assert is_significant(figure, effect) == significant


@pytest.mark.parametrize("n", [2, 5, 20])
def test_the_smallest_effect_is_seen_in_four_of_five_simulations(n):
    random = np.random.default_rng(n)
    drawn = 3.0 * (least_effect(n) / n**0.5 + random.normal(size=(20_000, n)))  # 3: the spread of differences
    assert np.mean(stats.ttest_1samp(drawn, 0, axis=1).pvalue < 0.05) == pytest.approx(0.8, abs=0.01)


def test_a_comparison_says_which_effect_it_would_have_seen():
    plain, debiased = [50.0, 61.0, 55.0, 58.0], [53.0, 60.0, 58.0, 64.0]
    error = stats.sem(np.subtract(debiased, plain))
    assert paired_effect(plain, debiased)["least"] == pytest.approx(least_effect(4) * error)


def test_intervals_to_show_end_at_what_is_possible():
    """An arm is between 0 and 100% right; what it forgets is between -100 and 100 points."""
    plain, debiased = [90.0, 95.0], [99.0, 90.0]
    effect = paired_effect(plain, debiased)
    assert effect["ci95"][0] < -86
    shown_one = within_possible(effect, plain, "A_avg")
    assert shown_one == effect | {"ci95": [effect["ci95"][0], 7.5], "cut": True}  # from 92.5% to 100%
    assert within_possible(paired_effect([10.0, 5.0], [1.0, 10.0]), [10.0, 5.0], "A_avg")["ci95"][0] == -7.5
    assert within_possible(effect, [0.0, 5.0], "F_last")["ci95"] == pytest.approx([effect["ci95"][0], 90.9], abs=1)
    arms = {name: {"tests": {"t": {"A_avg": values}}} for name, values in (("none", plain), ("x", debiased))}
    comparison = compare(arms)
    assert readable(comparison)["effects"]["x"]["t"]["A_avg"]["ci95"][1] == 7.5
    assert comparison["effects"]["x"]["t"]["A_avg"]["ci95"] == effect["ci95"]  # the numbers stay


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

    plain = {test: [50.0, 60.0, 55.0, 52.0, 57.0] for test in "abc"}
    better = {
        "a": [51.0, 61.1, 56.2, 53.1, 58.0],
        "b": [51.0, 62.0, 55.2, 53.6, 57.5],
        "c": [49.0, 62.0, 56.0, 51.0, 58.0],
    }
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


def slow_holm(ps):
    """Holm's procedure as he writes it: the ordered p-values one after the other, each times how many are left."""
    corrected, left, largest = dict(ps), dict(ps), 0.0
    while left:
        smallest = min(left, key=left.get)
        largest = max(largest, min(1.0, left[smallest] * len(left)))
        corrected[smallest] = largest
        del left[smallest]
    return corrected


def summaries(arms, seeds=5, better=None):
    """Summaries of arms on three test sets, of which one alone has the figure `contradict`."""
    random = np.random.default_rng(3)
    return {
        arm: {
            "tests": {
                test: {
                    figure: (60 + (better or {}).get(arm, 0) + random.normal(size=seeds)).tolist()
                    for figure in ("A_avg", "F_last", *(["contradict"] if test == "b" else []))
                }
                | {"A": [[1.0]]}
                for test in "abc"
            }
        }
        for arm in arms
    }


def test_p_values_are_corrected_for_arms_times_test_sets():
    arms = summaries(["none", "x", "y", "equal-x"], better={"x": 2.0})
    result = compare(arms)
    assert list(result["effects"]) == ["x", "y", "equal-x"]
    for figure, tests in (("A_avg", "abc"), ("F_last", "abc"), ("contradict", "b")):
        ps = {
            (arm, test): stats.ttest_rel(arms[arm]["tests"][test][figure], arms["none"]["tests"][test][figure]).pvalue
            for arm in ("x", "y", "equal-x")
            for test in tests
        }
        for (arm, test), p in slow_holm(ps).items():
            assert result["effects"][arm][test][figure]["p_holm"] == pytest.approx(p)
    assert "A" not in result["effects"]["x"]["a"]


def test_arms_of_equal_cost_are_compared_with_their_own():
    """Corrected by themselves: for the test sets of those pairs."""
    arms = summaries(["none", "x", "y", "equal-x", "equal-z"], better={"x": 2.0, "equal-x": 1.0})
    result = compare(arms)["at_equal_cost"]
    assert list(result) == ["x"]
    plain, debiased = arms["equal-x"]["tests"], arms["x"]["tests"]
    tested = {test: stats.ttest_rel(debiased[test]["A_avg"], plain[test]["A_avg"]) for test in "abc"}
    corrected = slow_holm({test: each.pvalue for test, each in tested.items()})
    for test in "abc":
        effect = result["x"][test]["A_avg"]
        assert effect["diff"] == pytest.approx(np.mean(debiased[test]["A_avg"]) - np.mean(plain[test]["A_avg"]))
        assert effect["p"] == pytest.approx(tested[test].pvalue)
        assert effect["p_holm"] == pytest.approx(corrected[test])
    assert "at_equal_cost" not in compare(summaries(["none", "x", "equal-y"]))


def test_arms_are_ranked_by_their_mean_effect():
    arms = summaries(["none", "little", "much", "harm"], better={"little": 3.0, "much": 9.0, "harm": -9.0})
    result = compare(arms)
    assert ranked(result) == ["much", "little", "harm"]
    lines = answer(result)
    assert [line.partition(":")[0] for line in lines[:3]] == ["much", "little", "harm"]
    assert lines[0].startswith("much: helps on a (+")
    assert lines[2].startswith("harm: hurts on a (-")
    assert lines[3] == "points of A_avg beside none; words go by p-values corrected for 9 comparisons"


def test_a_sentence_of_an_arm_has_a_clause_per_verdict():
    arms = summaries(["none", "x", "y"])
    for test, shift in (("a", 9.0), ("b", -9.0)):
        plain = arms["none"]["tests"][test]["A_avg"]
        arms["x"]["tests"][test]["A_avg"] = [value + shift + 0.1 * seed for seed, value in enumerate(plain)]
    plain = arms["none"]["tests"]["c"]["A_avg"]
    arms["x"]["tests"]["c"]["A_avg"] = [value + 1 - 2 * (seed % 2) for seed, value in enumerate(plain)]
    line = next(line for line in answer(compare(arms)) if line.startswith("x: "))
    assert line == "x: helps on a (+9.2); hurts on b (-8.8); no significant difference on c (+0.2)"
