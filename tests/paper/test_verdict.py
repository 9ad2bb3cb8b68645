"""The word: by hand, at every edge of the rule."""

import pytest

from droptop.paper.exhibits import Difference
from droptop.paper.verdict import together, word


@pytest.mark.parametrize(("paper", "low", "high", "says"), [
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
])
def test_one_figure(paper, low, high, says):
    assert word(paper, Difference((low + high) / 2, low, high, 0.01, 5)) == says


def test_one_seed_tells_nothing():
    assert word(5.6, Difference(6.0, n=1)) == "cannot tell"
    assert word(5.6, Difference(None)) == "cannot tell"


@pytest.mark.parametrize(("words", "says"), [
    (["reproduced", "reproduced"], "reproduced"), (["reproduced", "not reproduced"], "partly"),
    (["partly", "not reproduced"], "partly"), (["not reproduced", "not reproduced"], "not reproduced"),
    (["reproduced", "cannot tell"], "cannot tell"), ([], "cannot tell"), (["partly"], "partly"),
])
def test_several_figures(words, says):
    assert together(words) == says
