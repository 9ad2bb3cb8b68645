"""Hand-made nets of a few features, of which everything is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from droptop.paper.recipes.feature_definitions import (
    FeatureStatistics,
    Head,
    activation,
    feature_statistics,
    figures,
    kinds,
    pulls,
    votes,
)

# Three classes seen: 0 and 1 of an earlier task, 2 of the current one.
CURRENT = np.array([False, False, True])
HEAD = Head(np.array([[1.0, -2.0, 0.5, 0.0], [0.0, 0.0, 0.5, 3.0], [-1.0, 4.0, 0.0, 0.0]]), np.array([0.0, 0.0, 0.25]))
SEEN = np.array(
    [
        [3.0, 0.0, 1.0, 0.0],  # class 0: logits 3.5, 0.5, -2.75
        [0.0, 2.0, 1.0, 0.0],  # class 0: logits -3.5, 0.5, 8.25: taken for class 2
        [0.0, 0.0, 1.0, 1.0],  # class 1: logits 0.5, 3.5, 0.25
        [0.0, 4.0, 0.0, 0.0],
    ]
)  # class 2: logits -8, 0, 16.25
LABELS = np.array([0, 0, 1, 2])
UNSEEN = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, -3.0, 1.0, 0.0]])
WITHOUT = SEEN * np.array([1.0, 0.5, 1.0, 1.0])  # the second feature halves when the shortcut is taken away


def test_statistics_of_a_hand_computed_case():
    statistics = feature_statistics(SEEN, LABELS, UNSEEN, HEAD, CURRENT, WITHOUT)
    assert statistics.seen.tolist() == [0.75, 1.5, 0.75, 0.25]
    assert statistics.unseen.tolist() == [0, 2, 0.5, 0]
    assert statistics.votes.tolist() == [0, 1, 0, 0]  # only the second one speaks for class 2, wherever it speaks
    assert statistics.mistaken == pytest.approx(1 / 3)
    assert statistics.pull.tolist() == [0, 12, -0.5, 0]  # of the one image that is taken for class 2
    assert statistics.bias == 0.25
    assert statistics.pull.sum() + statistics.bias == 8.25 - -3.5
    assert statistics.response.tolist() == [0, 0.75, 0, 0]


def test_definitions_1_and_2():
    statistics = feature_statistics(SEEN, LABELS, UNSEEN, HEAD, CURRENT)
    unit = np.mean([0.75, 1.5, 0.75, 0.25])
    for rho, epsilon, shortcut, other in [
        (0, 0, [0, 1, 2, 3], []),
        (0.75 / unit, 0.5 / unit, [1, 2], [0]),
        (0.75 / unit, 0.51 / unit, [1], [0, 2]),
        (1, 1, [1], []),
        (3, 0, [], []),
    ]:
        both = [chosen.nonzero()[0].tolist() for chosen in kinds(statistics, rho, epsilon)]
        assert both == [shortcut, other]


def test_figures_of_the_hand_computed_case():
    statistics = feature_statistics(SEEN, LABELS, UNSEEN, HEAD, CURRENT, WITHOUT)
    unit = statistics.seen.mean()
    values = figures(statistics, 0.75 / unit, 1 / unit)
    assert values == pytest.approx(
        {
            "active": 75,
            "shortcuts": 100 / 3,
            "times as active": 2,
            "votes, shortcuts": 100,
            "votes, others": 0,
            "lead, shortcuts": 100 * 12 / 11.75,
            "lead, others": 100 * -0.5 / 11.75,
            "mistaken": 100 / 3,
            "response, shortcuts": 50,
            "response, others": 0,
        }
    )


def test_nothing_is_said_of_what_is_not_there():
    statistics = feature_statistics(SEEN, LABELS, UNSEEN, HEAD, CURRENT)
    values = figures(statistics, 100, 0)
    assert values["active"] == 0
    names = ("shortcuts", "times as active", "votes, shortcuts", "votes, others")
    assert [values[name] for name in names] == [None] * 4
    nobody_mistaken = feature_statistics(SEEN[[0, 2, 3]], LABELS[[0, 2, 3]], UNSEEN, HEAD, CURRENT)
    assert (nobody_mistaken.mistaken, nobody_mistaken.pull.tolist(), nobody_mistaken.bias) == (0, [0] * 4, 0)
    assert figures(nobody_mistaken, 0, 0)["lead, shortcuts"] is None


def test_a_feature_that_is_always_0_has_no_vote():
    silent = np.zeros((2, 4))
    assert np.isnan(votes(silent, HEAD, CURRENT)).all()
    loud = votes(np.array([[-1.0, 0, 0, 0], [1.0, 0, 0, 0]]), HEAD, CURRENT)
    assert loud[0] == 0.5  # below 0 it speaks for the class with the lowest weight, which is class 2


small = st.floats(-3, 3, width=32)


@given(arrays(np.float64, (6, 5), elements=small), arrays(np.float64, (3, 5), elements=small))
def test_votes_and_pulls_against_slow_loops(features, weight):
    head = Head(weight, np.array([0.5, -1.0, 0.0]))
    labels, rival = np.array([0, 1, 2, 0, 1, 2]), np.array([1, 2, 0, 2, 0, 1])
    logits = features @ weight.T + head.bias
    lead = logits[np.arange(6), rival] - logits[np.arange(6), labels]
    parts = pulls(features, head, labels, rival).sum(1) + head.bias[rival] - head.bias[labels]
    assert parts == pytest.approx(lead, abs=1e-9)
    shares = votes(features, head, CURRENT)
    for i in range(5):
        if len({*weight[:, i]}) < 3:
            continue  # a tie says nothing clear
        current = [CURRENT[(weight[:, i] * f).argmax()] for f in features[:, i] if f != 0]
        assert (np.isnan(shares[i]) and not current) or shares[i] == pytest.approx(np.mean(current))


def test_scale_does_not_matter():
    def statistics_at(scale: float) -> FeatureStatistics:
        head = Head(HEAD.weight / scale, HEAD.bias)
        return feature_statistics(SEEN * scale, LABELS, UNSEEN * scale, head, CURRENT, WITHOUT * scale)

    assert figures(statistics_at(1), 0.5, 0.5) == pytest.approx(figures(statistics_at(7), 0.5, 0.5))
    assert activation(np.array([[-1.0, 2.0], [3.0, 0.0]])).tolist() == [2, 1]
