"""What cues cost and what debiasing gives back, against scipy, from figures as a study gives them."""

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import nct, t, ttest_rel

from droptop.report.stress import answer, leaning, stress_tables
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


def guesses(found, chance, constant=10.0):
    """What guesses reach, by cue, where a study has figures."""
    return [
        value | {"figure": figure, "value": guess}
        for value in found
        if value["figure"] == "A_avg"
        for figure, guess in (("chance", chance[value["stream.shortcut"]]), ("constant", constant))
    ]


def test_where_a_learner_has_barely_learned_that_alone_is_said():
    """With 62 and 61% where a guess has 60%, a step of the way to 100% is 4 points."""
    found = values({("sticker", "none"): (90, 60), ("frame", "none"): (62, 61), ("frame", "droptop"): (80, 70)})
    chance = {"sticker": 20.0, "frame": 60.0}
    rows = stressed(found, guesses(found, chance))
    assert {(row.cue, row.debias): row.barely_learned for row in rows} == {
        ("sticker", "none"): False,
        ("frame", "none"): True,
        ("frame", "droptop"): False,
    }
    assert [leaning(row) for row in rows if row.debias == "none"] == ["leaning on it", "barely learned"]
    said = answer(rows)[0]
    assert said.startswith("er leans on 1 of 1 cue; sticker costs most")
    assert "er has barely learned with frame: it is hardly better than a guess" in said
    only = [value for value in found if (value["stream.shortcut"], value["debias"]) == ("frame", "none")]
    assert answer(stressed(only, guesses(only, chance)))[0].startswith("er has barely learned with any cue: ")
    assert not any(row.barely_learned for row in stressed(found))  # older results do not say what guesses reach
    assert not any(row.barely_learned for row in stressed(found, guesses(found, chance | {"frame": 20.0})))
    assert [row.barely_learned for row in stressed(only, guesses(only, chance | {"frame": 0.0}, 60.0))] == [True]


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
    for arm in ("none", "droptop"):  # a family each
        of_arm = sorted((row.cost["p"], row.cost["p_holm"]) for row in rows.values() if row.debias == arm)
        assert [corrected for _, corrected in of_arm] == pytest.approx([2 * of_arm[0][0], of_arm[1][0]])
    gains = sorted(row.given_back["p"] for row in rows.values() if row.given_back)
    assert min(row.given_back["p_holm"] for row in rows.values() if row.given_back) == pytest.approx(2 * gains[0])


def test_the_answer_says_who_leans_on_what():
    rows = stressed(values())
    assert [leaning(row) for row in rows if row.debias == "none"] == ["leaning on it", "no significant difference"]
    first, second = answer(rows)
    assert first.startswith("er leans on 1 of 2 cues; sticker costs most, ")
    assert float(first.split()[-2]) == pytest.approx(30, abs=1)
    assert second.startswith("droptop gives back most with sticker: +")
    assert second.endswith(" points where the cue says nothing.")
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
    assert answer(one) == ["One seed cannot tell on which cues er leans."]


def test_below_five_seeds_no_verdict_is_given():
    rows = stressed(values(seeds=4))
    points = {row.cue: row.cost["diff"] for row in rows if row.debias == "none"}
    assert answer(rows) == [f"No verdict below 5 seeds; they point to sticker ({points['sticker']:.1f} points)."]
    assert answer(stressed(values({("frame", "none"): (60, 80)}, seeds=3))) == [
        "No verdict below 5 seeds; they point to no cue."
    ]


def test_absence_is_told_by_what_could_have_been_seen():
    found = values({("frame", "none"): (60, 60), ("colour", "none"): (60, 60)})
    least = []
    for cue in ("frame", "colour"):
        differences = np.subtract(numbers(found, cue, "none", "biased"), numbers(found, cue, "none", "random"))
        error = differences.std(ddof=1) / np.sqrt(SEEDS)
        limit, effects = t.ppf(0.975, SEEDS - 1), np.linspace(2, 6, 40001)
        least.append(error * effects[np.argmax(nct.sf(limit, SEEDS - 1, effects) >= 0.8)])
    assert answer(stressed(found)) == [
        f"No cue was found to cost er anything: 6 seeds would have seen {min(least):.1f} to {max(least):.1f} points, "
        "depending on the cue."
    ]


def test_debiasing_beside_changes_nothing_of_what_the_plain_learner_leans_on():
    """With p of 0.02 on one of two cues, the plain arm's verdict stands alone, whatever other arms are measured."""
    means = {("frame", "none"): (60.6, 60), ("colour", "none"): (60, 60)}
    others = {(cue, f"arm{number}"): (60, 60) for cue in ("frame", "colour") for number in range(8)}
    alone = values(means)
    rows = [stressed(alone), stressed([*alone, *values(others)])]
    kept = [[(row.cue, row.cost) for row in found if row.debias == "none"] for found in rows]
    assert kept[0] == kept[1]
    assert answer(rows[0]) == answer(rows[1])  # and no arm is said to give something back that has no verdict


def test_intervals_end_at_what_is_possible():
    found = values({("frame", "none"): (95, 5)}, seeds=2)
    for value in found:
        value["value"] += 8 * value["seed"] * (-1 if value["test"] == "random" else 0)
    [row] = stressed(found)
    before, after = (np.array(numbers(found, "frame", "none", test)) for test in ("random", "biased"))
    low, high = ttest_rel(after, before).confidence_interval()
    assert 100 - before.mean() < high
    assert row.cost["ci95"] == pytest.approx([low, 100 - before.mean()])


@pytest.mark.parametrize("width", [66, 72, 80, 100, 140, 200])
def test_tables_cut_no_number_and_no_verdict(width):
    rows = stressed(values({**MEANS, ("background", "none"): (90, 1), ("background", "decouple"): (91, 0)}, seeds=2))
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        for table in stress_tables(rows, console.width):
            console.print(table)
    said = capture.get()
    assert "…" not in said
    costs, gains = said.split("What debiasing gives back")
    for row in rows:
        assert f"{row.cost['diff']:+.1f}" in costs
        if row.given_back is not None:
            assert f"{row.given_back['diff']:+.1f}" in gains
    if width >= 80:
        low, high = rows[0].cost["ci95"]
        assert f"{low:+.1f} .. {high:+.1f}" in costs
    assert said.count("cannot") == 0
    assert len([line for line in costs.splitlines() if "points to" in line]) >= 3
