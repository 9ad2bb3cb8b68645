"""`droptop.paired`: the numbers of `compare` and of scipy, for results of one's own; and what is no pairing."""

import json
import math

import numpy as np
import pytest
import torch
from scipy import stats

import droptop
from droptop import BadRequest
from droptop.results.statistics import holm

NONE = [50.0, 52.5, 49.0, 51.0, 50.5]
OURS = [53.0, 54.0, 50.0, 55.0, 51.5]
MINE = [50.2, 52.4, 49.3, 51.5, 50.1]


def test_two_lists_give_what_scipy_gives():
    found = droptop.paired(NONE, OURS)
    expected = stats.ttest_rel(OURS, NONE)
    assert found.diff == pytest.approx(np.mean(OURS) - np.mean(NONE))
    assert found.ci95 == pytest.approx(tuple(expected.confidence_interval()))
    assert found.p == pytest.approx(expected.pvalue) == found.p_holm
    assert found.reference == (pytest.approx(np.mean(NONE)), pytest.approx(stats.sem(NONE)), 5)
    assert found.arm == (pytest.approx(np.mean(OURS)), pytest.approx(stats.sem(OURS)), 5)
    assert found.n == 5


def test_a_comparison_has_the_same_numbers(comparison):
    """Of every test set and figure in its compare.json."""
    result = json.loads((comparison[0] / "compare.json").read_text())
    for test, figures in result["effects"]["droptop"].items():
        for figure, effect in figures.items():
            found = droptop.paired(*(arm["tests"][test][figure] for arm in result["arms"].values()))
            interval = None if found.ci95 is None else list(found.ci95)
            assert (found.diff, interval, found.p, found.least) == tuple(
                effect[name] for name in ("diff", "ci95", "p", "least")
            )


def test_arms_stand_beside_the_first_and_are_corrected_for_their_number():
    found = droptop.paired({"plain": NONE, "ours": OURS, "mine": MINE})
    assert list(found) == ["ours", "mine"]
    for name, values in (("ours", OURS), ("mine", MINE)):
        alone = droptop.paired(NONE, values)
        assert (found[name].diff, found[name].ci95, found[name].p) == (alone.diff, alone.ci95, alone.p)
        assert found[name].names == ("plain", name)
    assert [each.p_holm for each in found.values()] == holm([each.p for each in found.values()])
    assert found["ours"].p_holm == pytest.approx(2 * found["ours"].p)


@pytest.mark.parametrize("kind", [tuple, np.array, torch.tensor, iter, lambda values: np.array(values, dtype=object)])
def test_any_sequence_will_do(kind):
    assert droptop.paired(kind(NONE), kind(OURS)) == droptop.paired(NONE, OURS)


def test_dicts_are_paired_by_seed_whatever_their_order():
    a = dict(zip((7, 8, 9, 10, 11), NONE))
    b = dict(reversed([*zip((7, 8, 9, 10, 11), OURS)]))
    assert droptop.paired(a, b).p == droptop.paired(NONE, OURS).p
    assert droptop.paired({"a": a, "b": b})["b"].diff == droptop.paired(NONE, OURS).diff


@pytest.mark.parametrize("gap", [None, math.nan, np.float32("nan"), torch.tensor(math.nan)])
def test_seeds_without_a_value_are_left_out_of_the_difference(gap):
    found = droptop.paired([gap, *NONE], [40.0, *OURS[:4], gap])
    expected = stats.ttest_rel(OURS[:4], NONE[:4])
    assert (found.n, found.p) == (4, pytest.approx(expected.pvalue))
    assert (found.reference.n, found.arm.n, found.arm.mean) == (5, 5, pytest.approx(np.mean([40.0, *OURS[:4]])))


def test_one_seed_has_a_difference_and_no_interval():
    found = droptop.paired([50.0], [53.0])
    assert (found.diff, found.ci95, found.p, found.p_holm, found.n) == (3.0, None, None, None, 1)
    assert repr(found) == "b - a: +3; a 50, b 53; 1 seed"
    assert repr(droptop.paired(NONE[:4], OURS[:4])).endswith("; no verdict below 5 seeds")
    assert "verdict" not in repr(droptop.paired(NONE, OURS))
    nothing = droptop.paired([None, 1.0], [2.0, None])
    assert (nothing.diff, nothing.ci95, nothing.n) == (None, None, 0)
    assert repr(nothing) == "b - a: no pair; a 1, b 2; 0 seeds"


def test_it_reads_as_one_line_per_arm():
    expected = stats.ttest_rel(OURS, NONE)
    low, high = expected.confidence_interval()
    said = f"+2.1, 95% interval {low:+.3g} to {high:+.3g}, p = {expected.pvalue:.3f}"
    seen = f"5 seeds, which would have seen an effect of {droptop.paired(NONE, OURS).least:.2g}"
    means = f"50.6 ± {stats.sem(NONE):.2g}"
    assert repr(droptop.paired(NONE, OURS)) == f"b - a: {said}; a {means}, b 52.7 ± {stats.sem(OURS):.2g}; {seen}"
    first, second = repr(droptop.paired({"none": NONE, "ours": OURS, "mine": MINE})).splitlines()
    assert first.startswith(f"ours - none: {said} (Holm = {2 * expected.pvalue:.3f}); none {means}, ours 52.7")
    assert second.startswith("mine - none: +0.1")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ((NONE, OURS[:3]), "the same seeds of every arm; a has 5, b has 3: b lacks 3, 4"),
        (({0: 1.0, 1: 2.0}, {1: 2.0, 5: 3.0}), "a has 2, b has 2: a lacks 5 and b lacks 0"),
        (({"x": NONE, "y": OURS, "z": [1.0]},), "x has 5, z has 1: z lacks 1, 2, 3, 4"),
        (({"x": NONE},), "two arms at least, not 1"),
        ((NONE,), "two lists of results, or one dict of a list per arm"),
        (({0: 1.0, 1: 2.0},), "two lists of results, or one dict of a list per arm"),
        (([], []), "one seed at least; a has none"),
        ((NONE, 3.0), "a number per seed, as a list, an array or a dict by seed; b is not"),
        ((NONE, ["1", "2", "3", "4", "5"]), "b is not"),
        ((NONE, "12345"), "b is not"),
        ((NONE, [True] * 5), "b is not"),
        ((NONE, np.array([True] * 5)), "b is not"),
        ((NONE, set(OURS)), "b is not"),
        ((np.zeros((5, 1)), np.zeros((5, 1))), "a is not"),
        ((NONE, torch.zeros(5, 2)), "b is not"),
        ((NONE, [*OURS[:4], math.inf]), "numbers that are finite; b has an infinite one at 4"),
    ],
)
def test_what_is_no_pairing_is_refused_in_one_line(asked, says):
    with pytest.raises(BadRequest) as refused:
        droptop.paired(*asked)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
