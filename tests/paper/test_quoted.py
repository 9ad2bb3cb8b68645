"""The paper's figures agree with each other, as far as the paper's do."""

import pytest

from droptop.paper import quoted

ALL = {(method, place) for method, arm, place in quoted._FIGURES if arm == "none"}


def test_every_claim_is_there():
    assert len(ALL) == 5 * 10 + 2 * 6 + 2 * 6  # Table 1, Table 2, appendix F


@pytest.mark.parametrize(("method", "place"), sorted(ALL))
def test_relative_improvements_follow_from_the_figures(method, place):
    """To what the figures' single decimal leaves open."""
    before, after = (quoted.figure(method, arm, place) for arm in ("none", "droptop"))
    sign = -1 if place[2] == "F_last" else 1
    edges = [
        100 * sign * (b - a) / a
        for a in (before.mean - 0.05, before.mean + 0.05)
        for b in (after.mean - 0.05, after.mean + 0.05)
    ]
    assert min(edges) - 0.06 <= quoted.relative(method, place) <= max(edges) + 0.06


def test_ablations_means_are_those_of_table_1():
    """DropTop's column; the paper's 39.4 for ER on the unbiased sets is not the mean of its Table 1, 38.6."""
    for sets, table in ((quoted.BIASED, quoted.ABLATION), (quoted.UNBIASED, quoted.ABLATION_UNBIASED)):
        for method, figures in table.items():
            values = [quoted.figure(method, "droptop", (*one, "A_avg")).mean for one in sets]
            if (method, sets) != ("er", quoted.UNBIASED):
                assert figures[-1] == pytest.approx(sum(values) / len(values), abs=0.06), (method, sets)


@pytest.mark.parametrize(
    ("table", "means"),
    [(quoted.ABLATION, quoted.ABLATION_MEAN), (quoted.ABLATION_UNBIASED, quoted.ABLATION_UNBIASED_MEAN)],
)
def test_ablations_last_row_is_the_mean_of_the_others(table, means):
    for place, mean in enumerate(means):
        assert mean == pytest.approx(sum(row[place] for row in table.values()) / len(table), abs=0.06)


def test_forgetting_is_quoted_with_its_error():
    assert quoted.figure("er", "droptop", ("split-cifar10", "clean", "F_last")) == quoted.Mean(37.6, 1.9)
    assert quoted.figure("er", "droptop", ("fashion", "clean", "F_last")) is None
