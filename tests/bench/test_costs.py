"""What a step costs, in passes counted by hand; and plain arms that cost as much as others."""

import pytest

from droptop import configure
from droptop.bench.costs import WORTH_AN_ARM, equal_arms, measure, options_that_cost, passes_of
from droptop.runs.plan import plan_of

BATCH, REPLAYED, MEMORY = 32, 20, 90
OPTIONS = {"width": 4, "memory": MEMORY, "memory_batch": REPLAYED, "limit": 64}
ROWS = BATCH + REPLAYED
PROMPTS = {"weights": "random", "patch": 8, "depth": 2, "heads": 2, "prompt_blocks": 1, "net.width": 8}
ATTENTION, PROBE = ROWS / 3, MEMORY / 3  # forward alone

BY_HAND = {
    "plain": ("er", "none", {}, ROWS),
    "no probe": ("er", "fixed", {}, ROWS + ATTENTION),
    "neither": ("er", "random", {}, ROWS),
    "a probe every third step": ("er", "droptop", {}, ROWS + ATTENTION + PROBE / 3),
    "a probe every fifth step": ("er", "droptop", {"period": 5}, ROWS + ATTENTION + PROBE / 5),
    "a small probe": ("er", "droptop", {"probe": 15}, ROWS + ATTENTION + 15 / 3 / 3),
    "two models": ("er", "droptop", {"reference": True}, 2 * (ROWS + ATTENTION + PROBE / 3)),
    "images, styles and logits": ("er", "robust-light+randconv", {}, ROWS),
    "a look ahead, and back": ("er", "rsc", {}, 2 * ROWS),
    "separate forwards": ("er", "droptop", {"replay_forward": "separate"}, ROWS + ATTENTION + PROBE / 3),
    "iterations": ("er", "none", {"iterations": 3}, 3 * ROWS),
    "two draws": ("derpp", "none", {}, BATCH + 2 * REPLAYED),
    "a virtual step and candidates": ("mir", "none", {"candidates": 30}, BATCH + 2 * 30 / 3 + ROWS),
    "no memory": ("finetune", "none", {}, BATCH),
    "queries": ("l2p", "none", PROMPTS, ROWS + BATCH / 3),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_passes_are_counted(case):
    method, debias, options, expected = BY_HAND[case]
    config = configure("fashion", method, debias, **(OPTIONS if method != "l2p" else short_of(OPTIONS)) | options)
    assert passes_of(config) == pytest.approx(expected / BATCH)


def short_of(options):
    """The options that a ViT has."""
    return {name: value for name, value in options.items() if name != "width"}


def test_robust_does_two_iterations():
    assert passes_of(configure("fashion", "er", "robust", **OPTIONS)) == pytest.approx(2 * ROWS / BATCH)
    assert passes_of(configure("fashion", "derpp", "robust", **OPTIONS)) == pytest.approx(
        2 * (BATCH + 2 * REPLAYED) / BATCH
    )


@pytest.mark.parametrize("method", ["derpp", "mir"])
def test_equal_arms_cost_what_their_arms_cost(method):
    """An arm each that costs more; its plain options but for the iterations, and replay for what more it costs."""
    options = {name: value for name, value in OPTIONS.items() if name != "memory_batch"}
    plan = plan_of("compare", "fashion", method, "droptop,robust,robust-light,rsc+droptop,robust+droptop", options)
    equals = equal_arms(plan)
    assert list(equals) == ["equal-droptop", "equal-robust", "equal-rsc+droptop", "equal-robust+droptop"]
    replay = {"learner.memory_batch"} | ({"learner.candidates"} if method == "mir" else set())
    expected = {"robust": {"learner.iterations"}, "robust+droptop": {"learner.iterations"} | replay}
    for name, equal in equals.items():
        arm = plan.arms[name.removeprefix("equal-")]
        assert passes_of(equal) == pytest.approx(passes_of(arm), rel=0.05)
        assert equal.options.debias == "none"
        changed = {path for path, value in equal.noted().items() if value != plan.arms["none"].noted()[path]}
        assert changed == expected.get(name.removeprefix("equal-"), replay)


def test_options_that_change_what_a_step_costs():
    plan = plan_of("compare", "fashion", "er", "droptop", OPTIONS)
    values = {
        "learner.lr": (0.01, 0.1),
        "learner.memory_batch": (16, 32),
        "learner.iterations": (1,),
        "net.width": (4,),
    }
    assert options_that_cost(plan, values) == ["learner.memory_batch", "net.width"]


def test_where_nothing_is_replayed_equal_arms_iterate():
    plan = plan_of("compare", "fashion", "finetune", "rsc", OPTIONS)
    (equal,) = equal_arms(plan).values()
    assert equal.learner.iterations == 2
    assert passes_of(equal) == passes_of(plan.arms["rsc"]) == 2


def test_arms_that_cost_little_more_have_no_equal():
    """Below 5 percent, as styles are; an attention pass is a third of a pass."""
    plan = plan_of("compare", "fashion", "er", "mixstyle,fixed", OPTIONS)
    assert list(equal_arms(plan)) == ["equal-fixed"]
    assert WORTH_AN_ARM == 1.05


def test_passes_are_measured_together_with_time():
    plan = plan_of("compare", "fashion", "er", "rsc", OPTIONS)
    costs = measure(plan)
    assert list(costs) == ["none", "rsc"]
    assert costs["rsc"]["passes"] == 2 * costs["none"]["passes"] == pytest.approx(2 * ROWS / BATCH)
    assert all(0 < cost["ms"] < 10_000 for cost in costs.values())
