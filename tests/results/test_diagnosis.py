"""What is said of an arm before anything is debiased, on summaries made by hand."""

import numpy as np
import pytest
from scipy import stats

from droptop.report.diagnosis_text import diagnosis_lines
from droptop.results.diagnosis import diagnose, diagnosed
from droptop.results.metrics import guesses
from droptop.results.statistics import compare

WITH = [80.0, 84.0, 82.0, 85.0, 79.0]


def summary(with_cue, without=None, guess=25.0, debias="none", **more):
    """Of one test set, `test`, or of two, the second of which lacks the cue."""
    figures = {"test": {"A_avg": with_cue}} | ({} if without is None else {"test-nologo": {"A_avg": without}})
    guesses = {test: {name: [guess] * len(with_cue) for name in ("chance", "constant")} for test in figures}
    about = {"data": "d", "method": "er", "debias": debias, "seeds": list(range(len(with_cue)))}
    return about | {"tests": figures, "guesses": guesses} | more


def said(of_arm, name="none"):
    return diagnosis_lines(diagnose(name, of_arm), of_arm)


def lower(by, spread=1.0):
    """WITH, and so many points less, with some spread over seeds."""
    return [value - by + spread * change for value, change in zip(WITH, (-1, 0, 1, 2, -2))]


def test_a_learner_that_loses_many_points_relies_on_the_cue():
    without = lower(60)
    found = diagnose("none", summary(WITH, without))
    lost, oracle = found["lost"]["test-nologo"], stats.ttest_rel(WITH, without)
    assert (found["finding"], found["cue"], lost["finding"]) == ("relies", "test", "relies")
    assert lost["diff"] == pytest.approx(60)
    assert lost["ci95"] == pytest.approx(list(oracle.confidence_interval()))
    assert lost["p_holm"] == pytest.approx(oracle.pvalue)
    low, high = oracle.confidence_interval()
    first, second = said(summary(WITH, without))
    assert first.startswith("plain er: average accuracy 82.0 ± 1.1% on test and 22.0 ± ")
    assert first.endswith("; a blind guess gives 25.0%")
    assert second == (
        f"plain er relies on the cue: against test, it loses 60.0 points ({low:.1f} to {high:.1f}) on test-nologo"
    )


def test_a_learner_that_loses_few_points_does_not():
    of_arm = summary(WITH, lower(1))
    high = stats.ttest_rel(WITH, lower(1)).confidence_interval().high
    assert diagnose("none", of_arm)["finding"] == "no reliance"
    assert said(of_arm)[1] == (
        f"no reliance found: against test, plain er loses at most {high:.1f} points on test-nologo: there is nothing "
        "to remove"
    )
    better = said(summary(WITH, lower(-20)))[1]
    assert "at most 0.0 points" in better
    assert "nothing to remove" in better


def test_a_loss_that_may_be_nothing_or_much_is_left_open():
    of_arm = summary(WITH, lower(6, spread=6))
    assert diagnose("none", of_arm)["finding"] == "cannot tell"
    assert "cannot be told yet: against test, it may lose -5.8 to 17.8 points on test-nologo" in said(of_arm)[1]


@pytest.mark.parametrize(("reached", "barely"), [(27.0, True), (32.4, True), (32.6, False)])
def test_a_learner_near_a_guess_has_barely_learned(reached, barely):
    """A tenth of the way from 25% to 100% is 32.5%."""
    of_arm = summary([reached] * 5, [24.0, 25.0, 26.0, 25.0, 24.0])
    assert (diagnose("none", of_arm)["finding"] == "barely learned") == barely
    assert ("Raise the learning rate or --iterations first" in said(of_arm)[1]) == barely


def test_the_better_guess_counts_and_one_test_set_above_it_is_enough():
    of_arm = summary([45.0] * 5, [30.0] * 5)
    of_arm["guesses"]["test"]["constant"] = [44.0] * 5
    of_arm["guesses"]["test-nologo"]["constant"] = [44.0] * 5
    assert diagnose("none", of_arm)["finding"] == "barely learned"
    assert said(of_arm)[0].endswith("a blind guess gives 25.0%, always naming the most frequent class 44.0%")
    of_arm["guesses"]["test"]["constant"] = [25.0] * 5
    assert diagnose("none", of_arm)["finding"] != "barely learned"


@pytest.mark.parametrize(
    ("by", "text"),
    [
        (60, "2 seeds point to reliance on the cue: against test, plain er loses 60.5 points on test-nologo"),
        (0, "2 seeds show no clear reliance on the cue"),
    ],
)
def test_few_seeds_never_get_a_verdict(by, text):
    of_arm = summary(WITH[:2], lower(by)[:2])
    assert diagnose("none", of_arm)["finding"] == "too few seeds"
    assert said(of_arm)[1] == f"{text}; no verdict below 5 seeds"
    one = summary(WITH[:1], [20.0])
    assert said(one)[1] == "one seed: against test, plain er loses 60.0 points on test-nologo; no verdict below 5 seeds"


def test_groups_are_told_of_where_nothing_else_is_seen_and_no_reliance_is_claimed():
    """The worst group of each seed counts; the name is that of most seeds, here of four of five."""
    of_arm = summary(WITH)
    land, water = [90.0, 88.0, 86.0, 84.0, 50.0], [40.0, 42.0, 44.0, 46.0, 70.0]
    worst, gap = [list(map(each, land, water)) for each in (min, lambda a, b: abs(a - b))]
    of_arm["tests"]["test"] |= {"worst place": worst, "gap place": gap, "place=land": land, "place=water": water}
    of_arm["tests"]["test"] |= {"worst rare": [None] * 5, "gap rare": [None] * 5, "rare=a": WITH}  # none large enough
    found = diagnose("none", of_arm)
    assert found["groups"] == {"place": {"worst": 44.4, "name": "water", "gap": 39.2}}
    assert found["finding"] == "no set without the cue"
    assert said(of_arm)[1] == (
        "no test set lacks the cue, so nobody can see whether plain er leans on it; at the end, its worst place on "
        "test is water with 44.4%, 39.2 points below the best"
    )
    of_arm["tests"]["test-nologo"] = {"A_avg": lower(60)}
    assert "groups" not in diagnose("none", of_arm)
    assert "worst place" not in said(of_arm)[1]


def test_without_a_set_that_lacks_the_cue_groups_of_samples_take_its_place():
    of_arm = summary(WITH)
    assert diagnose("none", of_arm)["finding"] == "no set without the cue"
    assert said(of_arm)[1] == "no test set lacks the cue, so nobody can see whether plain er leans on it"
    of_arm["tests"]["test"] |= {"follow": WITH, "contradict": lower(40)}
    found = diagnose("none", of_arm)
    assert (found["finding"], found["lost_between"]) == ("relies", "groups")
    assert found["lost"]["contradict"]["diff"] == pytest.approx(40)
    assert "against samples that follow it, it loses 40.0 points (" in said(of_arm)[1]
    of_arm["tests"]["test"]["contradict"] = [None] * 5
    assert diagnose("none", of_arm)["finding"] == "no set without the cue"


def test_a_stream_says_which_sets_have_the_cue():
    of_arm = summary(WITH, lower(60), cue={"test": False, "test-nologo": True})
    found = diagnose("none", of_arm)
    assert found["cue"] == "test-nologo"
    assert found["lost"]["test"]["diff"] == pytest.approx(-60)
    neither = summary(WITH, lower(60), cue={"test": True})
    assert diagnose("none", neither)["lost"] == {}


def night(tests, **more):
    """A plain arm on sets of these names, each 20 points harder than the one before it."""
    of_arm = summary(WITH, **more)
    of_arm["tests"] = {test: {"A_avg": lower(20 * place)} for place, test in enumerate(tests)}
    return of_arm


def test_a_harder_set_that_nobody_says_lacks_the_cue_is_an_observation():
    of_arm = night(["test", "night"])
    found = diagnose("none", of_arm)
    assert (found["finding"], found["lost"]) == ("no set without the cue", {})
    assert found["observed"]["night"]["diff"] == pytest.approx(20)
    of_arm["tests"]["night"]["A_avg"] = lower(20, spread=3)
    low, high = stats.ttest_rel(lower(0), lower(20, spread=3)).confidence_interval()
    assert said(of_arm)[1] == (
        f"against test, plain er loses 20.0 points ({low:.1f} to {high:.1f}) on night; no test set is known to lack "
        "the cue, so this does not show what it leans on"
    )
    of_arm["tests"]["night"]["A_avg"] = lower(-5, spread=3)
    low, high = stats.ttest_rel(lower(-5, spread=3), lower(0)).confidence_interval()
    assert f"plain er gains 5.0 points ({low:.1f} to {high:.1f}) on night; no test set" in said(of_arm)[1]
    few = summary(WITH[:2])
    few["tests"]["night"] = {"A_avg": lower(20)[:2]}
    assert "on night; no verdict below 5 seeds; no test set is known" in said(few)[1]


@pytest.mark.parametrize(
    "name",
    ["nologo", "test-nologo", "no-logo", "test_no_ruler", "No-Tag", "without-text", "removed", "random", "nocues"],
)
def test_names_say_which_set_lacks_the_cue(name):
    found = diagnose("none", night(["test", "night", name]))
    assert (found["finding"], list(found["lost"]), found["cue"]) == ("cannot tell", [name], "test")
    assert diagnose("none", night([name, "test"]))["cue"] == "test"


@pytest.mark.parametrize("name", ["night", "noise", "normal", "north", "novel", "unseen", "dark-random", "test-2"])
def test_other_names_say_nothing_of_a_cue(name):
    assert diagnose("none", night(["test", name]))["finding"] == "no set without the cue"


def test_a_set_alone_is_not_held_against_itself():
    assert diagnose("none", night(["random"]))["lost"] == {}


@pytest.mark.parametrize(
    ("guess", "lost", "finding"),
    [(2.0, 4.0, "no reliance"), (62.0, 4.0, "relies"), (62.0, 0.5, "no reliance"), (82.5, 0.0, "cannot tell")],
)
def test_how_little_is_no_reliance_goes_by_what_was_learned(guess, lost, finding):
    """82% where a guess gives 62%: 20 points were learned, of which 2 may be lost; 4 of 80 are within 5."""
    of_arm = summary(WITH, lower(lost, spread=0.3), guess)
    interval = stats.ttest_rel(WITH, lower(lost, spread=0.3)).confidence_interval()
    assert interval.high < 5
    assert diagnose("none", of_arm)["lost"]["test-nologo"]["finding"] == finding


def test_a_finding_goes_by_the_whole_interval():
    """What is lost of 4% may be 6 points on paper; that no more than 4 are there to lose proves nothing."""
    with_cue, without = [8.0, 0.0, 7.0, 1.0, 4.5], [0.0, 6.0, 1.0, 4.0, 3.0]
    of_arm = summary(with_cue, without, 0.0)
    assert stats.ttest_rel(with_cue, without).confidence_interval().high > 5
    found = diagnose("none", of_arm)["lost"]["test-nologo"]
    assert found["ci95"][1] == pytest.approx(np.mean(with_cue))
    assert found["finding"] == "cannot tell"


def test_a_loss_ends_at_what_is_possible():
    """The set without the cue cannot be below 0%."""
    without = [0.0, 12.0, 1.0]
    found = diagnose("none", summary([60.0, 50.0, 40.0], without))["lost"]["test-nologo"]
    assert stats.ttest_rel([60.0, 50.0, 40.0], without).confidence_interval().high > 50
    assert found["ci95"][1] == pytest.approx(50)


def test_older_results_without_guesses_are_told_of():
    of_arm = summary([26.0] * 5, [25.0] * 5)
    del of_arm["guesses"]
    assert diagnose("none", of_arm)["finding"] == "cannot tell"  # nobody knows how much was learned
    assert "guess" not in said(of_arm)[0]
    assert "it may lose 1.0 points (the same in every seed) on test-nologo" in said(of_arm)[1]


def test_the_first_arm_is_diagnosed_whatever_its_name():
    arms = {"mine": summary(WITH, lower(60), debias="mixstyle"), "none": summary(WITH, lower(1))}
    found = diagnosed(compare(arms))["diagnosis"]
    assert (found["arm"], found["finding"]) == ("mine", "relies")
    assert said(arms["mine"], "mine")[0].startswith("er (mine): ")


def test_guesses_by_simulation():
    """Two tasks of unlike classes: guesses are drawn among the classes seen."""
    n = [[30, 10, 0], [30, 10, 20]]
    after = [{"follow": {"n": [c // 2 for c in counts], "correct": [0] * 3}} for counts in n]
    after = [each | {"contradict": each["follow"]} for each in after]
    random = np.random.default_rng(0)
    chances, constants = [], []
    for counts in n:
        labels = np.repeat(np.arange(3), counts)
        seen = np.flatnonzero(counts)
        chances.append(100 * np.mean(random.choice(seen, (4000, len(labels))) == labels))
        constants.append(max(100 * np.mean(labels == each) for each in seen))
    found = guesses(after, ((0, 1), (2,)))
    assert found["chance"] == pytest.approx(np.mean(chances), abs=0.5)
    assert found["constant"] == pytest.approx(np.mean(constants))


def test_classes_that_come_early_can_be_guessed():
    after = [{"all": {"n": [5, 5, 5], "correct": [0, 0, 0]}}] * 2
    assert guesses(after, ((0, 1), (2,)))["chance"] == pytest.approx(100 / 3)
    nothing_to_test = [{"all": {"n": [5, 0], "correct": [0, 0]}}]
    assert guesses(nothing_to_test, ((0, 1),)) == {"chance": 50.0, "constant": 100.0}
