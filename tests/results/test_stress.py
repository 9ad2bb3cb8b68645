"""What cues cost and what debiasing gives back, against scipy, from figures as a study gives them."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from droptop.report.stress import answer, leaning
from droptop.results.stress import stressed

SEEDS = 6
# Accuracy on biased and on random, by cue and arm.
MEANS = {
    ("sticker", "none"): (70, 40),
    ("sticker", "droptop"): (62, 50),
    ("frame", "none"): (60, 59.9),
    ("frame", "droptop"): (60, 60),
    ("none", "none"): (90, 10),  # a run without a painted cue
}


def values(means=MEANS, seeds=SEEDS):
    """Figures of every cell in no order; those that are not asked for would change everything."""
    random = np.random.default_rng(0)
    found = []
    for (cue, debias), (biased, chance) in means.items():
        for seed in range(seeds):
            cell = {"data": "fashion", "method": "er", "stream.shortcut": cue, "debias": debias, "seed": seed}
            level = random.normal()
            for test, mean in (("biased", biased), ("random", chance), ("removed", 99)):
                for figure, extra in (("A_avg", 0), ("A_last", -20)):
                    value = mean + extra + level + 0.5 * random.normal()
                    found.append(cell | {"run": f"{cue}-{debias}", "test": test, "figure": figure, "value": value})
    random.shuffle(found)
    return found


def numbers(found, cue, debias, test):
    chosen = {
        value["seed"]: value["value"]
        for value in found
        if (value["stream.shortcut"], value["debias"], value["test"], value["figure"]) == (cue, debias, test, "A_avg")
    }
    return [chosen[seed] for seed in sorted(chosen)]


def test_differences_are_those_of_scipy():
    found = values()
    rows = {(row.cue, row.debias): row for row in stressed(found)}
    assert list(rows) == [("sticker", "none"), ("sticker", "droptop"), ("frame", "none"), ("frame", "droptop")]
    for (cue, debias), row in rows.items():
        of = {test: numbers(found, cue, debias, test) for test in ("biased", "random")}
        assert row.biased.mean == pytest.approx(np.mean(of["biased"]))
        assert (row.random.mean, row.random.n) == (pytest.approx(np.mean(of["random"])), SEEDS)
        pairs = [(row.cost, of["random"], of["biased"])]
        if debias == "none":
            assert row.given_back is row.on_biased is None
        else:
            pairs.append((row.given_back, numbers(found, cue, "none", "random"), of["random"]))
            pairs.append((row.on_biased, numbers(found, cue, "none", "biased"), of["biased"]))
        for effect, before, after in pairs:
            expected = ttest_rel(after, before)
            assert effect["diff"] == pytest.approx(np.mean(after) - np.mean(before))
            assert effect["p"] == pytest.approx(expected.pvalue)
            assert effect["ci95"] == pytest.approx([*expected.confidence_interval()])
    costs = sorted(row.cost["p"] for row in rows.values())
    assert min(row.cost["p_holm"] for row in rows.values()) == pytest.approx(4 * costs[0])
    gains = sorted(row.given_back["p"] for row in rows.values() if row.given_back)
    assert min(row.given_back["p_holm"] for row in rows.values() if row.given_back) == pytest.approx(2 * gains[0])


def test_the_answer_says_who_leans_on_what():
    rows = stressed(values())
    assert [leaning(row) for row in rows if row.debias == "none"] == ["leaning on it", "no significant difference"]
    first, second = answer(rows)
    assert first.startswith("er leans on 1 of 2 cues; sticker costs most, ")
    assert float(first.split()[-2]) == pytest.approx(30, abs=1)
    assert second.startswith("droptop gives back most with sticker: +")
    assert second.endswith("points where the cue says nothing (better).")
    [alone] = answer(stressed(values({("frame", "none"): (60, 60)})))
    assert alone == "er leans on none of 1 cue."
    assert stressed(values({("none", "none"): (90, 10)})) == []


def test_seeds_are_paired_and_what_lacks_one_is_left_out():
    """A seed that only one arm has counts in its own cost, and in no gain."""
    found = [value for value in values() if (value["debias"], value["seed"]) != ("none", 2)]
    row = next(row for row in stressed(found) if (row.cue, row.debias) == ("sticker", "droptop"))
    plain, debiased = numbers(found, "sticker", "none", "random"), numbers(found, "sticker", "droptop", "random")
    assert row.random.n == 6
    assert row.given_back["diff"] == pytest.approx(np.mean(np.delete(debiased, 2) - plain))
    without = [value for value in values() if value["debias"] != "none"]
    assert all(row.given_back is None for row in stressed(without))
    one = stressed(values(seeds=1))
    assert leaning(one[0]) == "one seed: cannot tell"
    assert answer(one)[0] == "One seed cannot tell on which cues er leans."
