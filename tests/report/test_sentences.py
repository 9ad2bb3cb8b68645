"""The headline of a comparison: what it found, and how much that weighs."""

import numpy as np
import pytest

from droptop.report.diagnosis_text import called
from droptop.report.sentences import answer, contenders, headline, ranked, readable, reference_name
from droptop.report.tables import effect_cells, heading, mean_error
from droptop.results.diagnosis import diagnosed
from droptop.results.statistics import compare, paired_effect

SHIFTS = {"better": 5.0, "worse": -5.0, "same": 0.0}
NOISE = np.random.default_rng(0).normal(size=20) / 10


def comparison(found, seeds=5, reference="none", **more):
    """A comparison in which arms have these effects by test set, on some seeds."""
    noise = NOISE[:seeds] - NOISE[:seeds].mean()  # so that an effect of 0 is exactly 0
    of_tests = {reference: dict.fromkeys(next(iter(found.values())), "same")} | found
    return readable(
        compare(
            {
                arm: {"method": "er", "data": "toys", "debias": arm, "seeds": list(range(seeds))}
                | {
                    "tests": {
                        test: {"A_avg": [50 + SHIFTS[word] + (arm != reference) * change for change in noise.tolist()]}
                        for test, word in tests.items()
                    }
                }
                | more
                for arm, tests in of_tests.items()
            }
        )
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"a": {"x": "better"}}, "On toys, a helps er on x (5 seeds)."),
        ({"a": {"x": "same"}}, "On toys, no significant difference between er with a and without (5 seeds)."),
        (
            {"a": {"x": "better", "y": "worse", "z": "better", "v": "same"}},
            "On toys, a helps er on x and z, and hurts er on y; no significant difference on v "
            "(5 seeds, p-values corrected for 4 test sets).",
        ),
        (
            {"a": {"x": "same"}, "b": {"x": "worse"}},
            "On toys, none of 2 arms helps er by a significant difference "
            "(5 seeds, p-values corrected for 2 comparisons).",
        ),
        (
            {"a": {"x": "same"}, "b": {"x": "better"}, "equal-b": {"x": "better"}},
            "On toys, the best of 2 arms: b helps er on x (5 seeds, p-values corrected for 3 comparisons).",
        ),
        # The arm that is ahead on average helps nowhere by a significant difference, but another one does.
        (
            {"a": {"x": "same", "y": "same"}, "b": {"x": "better", "y": "worse"}},
            "On toys, the best of 2 arms: b helps er on x, and hurts er on y "
            "(5 seeds, p-values corrected for 4 comparisons).",
        ),
        (
            {"a": {"x": "same"}, "equal-a": {"x": "better"}},
            "On toys, no significant difference between er with a and without "
            "(5 seeds, p-values corrected for 2 comparisons).",
        ),
    ],
)
def test_the_headline_names_the_best_arm_that_helps_and_its_weight(found, said):
    assert headline(comparison(found)) == said


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        (1, "On toys, one seed cannot tell a difference between er with a and without; no verdict below 5 seeds"),
        (4, "On toys, with a the seeds point to better on x, and to worse on y; no verdict below 5 seeds"),
    ],
)
def test_fewer_than_five_seeds_get_a_direction_and_no_verdict(seeds, said):
    found = {"a": {"x": "better", "y": "worse", "z": "same"}}
    assert headline(comparison(found, seeds)) == f"{said} ({seeds} seed{'s' if seeds > 1 else ''})."


def test_no_direction_is_said_to_be_none():
    said = headline(comparison({"a": {"x": "same"}}, 3))
    assert said == "On toys, no clear direction between er with a and without; no verdict below 5 seeds (3 seeds)."
    several = headline(comparison({"a": {"x": "better"}, "b": {"x": "same"}}, 3))
    assert several.startswith("On toys, the best of 2 arms so far: with a the seeds point to better on x; no verdict")


def test_a_quick_look_is_called_one():
    assert headline(comparison({"a": {"x": "better"}}, limit=64)).endswith(
        "helps er on x (a quick look: 64 samples per task, 5 seeds)."
    )


def test_another_reference_than_none_is_named():
    assert headline(comparison({"a": {"x": "better"}}, reference="mine")) == (
        "On toys, a is better than mine on x (5 seeds)."
    )
    few = headline(comparison({"none": {"x": "worse"}}, 3, reference="mine"))
    assert few.startswith("On toys, with none instead of mine the seeds point to worse on x; no verdict")


def test_plain_arms_of_equal_cost_do_not_contend():
    assert contenders(["equal-robust", "robust", "equal-footing", "droptop"]) == ["robust", "equal-footing", "droptop"]


def test_titles_have_every_method_and_the_reference_its_name():
    arm = {"method": "er", "data": "fashion", "seeds": [0, 1]}
    assert heading(arm, arm | {"method": "/x/mine.py"}, arm) == "er and mine on fashion, 2 seeds"
    assert heading(arm) == "er on fashion, 2 seeds"
    assert (reference_name("none"), reference_name("none", "a"), reference_name("er", "a")) == (
        "the plain arm",
        "a plain arm",
        "er",
    )
    assert called("er", arm | {"debias": "none"}) == called("none", arm | {"debias": "none"}) == "plain er"
    assert called("er", arm | {"debias": "droptop"}) == "er"
    assert called("droptop", arm | {"debias": "droptop"}) == "er (droptop)"


def test_an_unclear_best_arm_is_told_of_in_a_sentence():
    found = {"a": {"x": "same"}, "b": {"x": "worse"}}
    assert headline(comparison(found, 3)).startswith(
        "On toys, no clear direction between er with a, the best of 2 arms so far, and without; no verdict"
    )
    assert headline(comparison(found, 1)).startswith(
        "On toys, one seed cannot tell a difference between er with a, the"
    )


def test_arms_are_ranked_and_help_by_the_sets_without_the_cue():
    found = {"a": {"test": "better", "nologo": "same"}, "b": {"test": "worse", "nologo": "better"}}
    assert ranked(comparison(found)) == ["b", "a"]
    assert headline(comparison(found)).startswith(
        "On toys, the best of 2 arms: b helps er on nologo, and hurts er on test"
    )
    said = comparison(found | {"b": {"test": "same", "nologo": "worse"}})
    assert headline(said).startswith(
        "On toys, none of 2 arms helps er on nologo by a significant difference; a helps er on test, but no gain is "
        "shown where the cue is gone"
    )
    alone = comparison({"a": found["a"]})
    assert headline(alone).startswith(
        "On toys, a helps er on test; no significant difference on nologo, but no gain is shown where the cue is gone"
    )


def relying(found, reached):
    """A comparison whose reference loses much on nologo, where a guess is right in 25%."""
    result = comparison(found)
    for arm in result["arms"].values():
        arm["tests"]["test"]["A_avg"] = [value + 30 for value in arm["tests"]["test"]["A_avg"]]
        arm["tests"]["nologo"]["A_avg"] = [value - 50 + reached + n / 9 for n, value in enumerate(NOISE[:5] + 50)]
        arm["guesses"] = {test: {"chance": [25.0] * 5, "constant": [25.0] * 5} for test in arm["tests"]}
    return diagnosed(compare(result["arms"]))


def test_what_is_not_given_back_comes_first():
    result = relying({"a": {"test": "same", "nologo": "same"}, "b": {"test": "same", "nologo": "same"}}, 26)
    lost = result["diagnosis"]["lost"]["nologo"]["diff"]
    blind = "; all arms are hardly better than a blind guess there"
    assert answer(result)[0] == f"of {lost:.1f} lost points, no arm gives back any on nologo{blind}"
    result = relying({"a": {"test": "same", "nologo": "same"}}, 50)
    plain = result["arms"]["none"]["tests"]["nologo"]["A_avg"]
    changes = [-3.0, 5.0, 1.0, -1.0, 3.5]
    result["arms"]["a"]["tests"]["nologo"]["A_avg"] = [value + change for value, change in zip(plain, changes)]
    result = diagnosed(compare(result["arms"]))
    lost = result["diagnosis"]["lost"]["nologo"]["diff"]
    assert answer(result)[0] == f"of {lost:.1f} lost points, a gives back 1.1 on nologo (no significant difference)"
    result["arms"]["a"]["tests"]["nologo"]["A_avg"] = [value + 9 + n / 9 for n, value in enumerate(plain)]
    assert not answer(diagnosed(compare(result["arms"])))[0].startswith("of ")


def test_no_number_is_minus_zero():
    assert effect_cells(paired_effect([1.0, 1.0, 1.0], [0.99, 0.97, 0.98]))[0] == "+0.0"
    assert mean_error([-0.01]) == "0.0"
