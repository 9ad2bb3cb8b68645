"""The verdict: by hand, at every edge of the rule."""

import pytest

from droptop.paper import quoted
from droptop.paper.tables import Difference, Mean
from droptop.paper.verdict import gap, judge, overall

CLEAR = Difference(3.0, 2.0, 4.0, 0.001, 5)


@pytest.mark.parametrize(
    ("paper", "low", "high", "says"),
    [
        (5.6, 0.1, 6.0, "reproduced"),  # excludes 0, reaches 5.6
        (5.6, 0.1, 5.5, "partly"),  # excludes 0, falls short
        (5.6, 5.7, 9.0, "reproduced"),  # larger than the paper's
        (5.6, 0.0, 6.0, "not reproduced"),  # 0 is in it
        (5.6, -0.1, 6.0, "not reproduced"),
        (5.6, -6.0, -0.1, "not reproduced"),  # the other side
        (-2.3, -4.0, -0.5, "reproduced"),  # forgetting falls
        (-2.3, -2.0, -0.5, "partly"),
        (-2.3, 0.5, 4.0, "not reproduced"),
        (2.8, 0.2, 3.0, "reproduced"),  # where the paper's forgetting grows, growing is its side
    ],
)
def test_one_figure(paper, low, high, says):
    assert judge(Mean(paper), Difference((low + high) / 2, low, high, 0.01, 5)) == says


def test_one_seed_tells_nothing():
    assert judge(Mean(5.6), Difference(6.0, n=1)) == "cannot tell"
    assert judge(Mean(5.6), Difference(None)) == "cannot tell"


@pytest.mark.parametrize(
    ("difference", "error", "says"),
    [
        (1.0, 0.6, "no claim"),
        (-1.0, 0.6, "no claim"),
        (0.0, 0.1, "no claim"),
        (1.0, 0.5, "reproduced"),
        (1.0, None, "reproduced"),  # the ablation comes without errors
    ],
)
def test_what_the_paper_s_own_errors_swallow_is_no_claim(difference, error, says):
    assert judge(Mean(difference, error), CLEAR) == says


def test_the_paper_s_differences():
    assert gap(Mean(3.0, 0.3), Mean(4.0, 0.4)) == Mean(1.0, pytest.approx(0.5))
    assert gap(Mean(3.0, 0.3), Mean(4.0)) == Mean(1.0)
    assert gap(None, Mean(4.0)) is None
    mir = [quoted.figure("mir", arm, (*quoted.CIFAR_10, "A_avg")) for arm in ("none", "droptop")]  # +0.1 ± 0.8
    assert judge(gap(*mir), CLEAR) == "no claim"
    assert judge(gap(*mir), Difference(None)) == "no claim"  # whatever was measured


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["reproduced", "reproduced"], "reproduced"),
        (["reproduced", "not reproduced"], "partly"),
        (["partly", "not reproduced"], "partly"),
        (["not reproduced", "not reproduced"], "not reproduced"),
        (["reproduced", "cannot tell"], "cannot tell"),
        ([], "cannot tell"),
        (["partly"], "partly"),
        (["reproduced", "no claim"], "reproduced"),
        (["no claim", "not reproduced"], "not reproduced"),
        (["no claim", "no claim"], "no claim"),
        (["no claim", "cannot tell"], "cannot tell"),
    ],
)
def test_several_figures(words, says):
    assert overall(words) == says
