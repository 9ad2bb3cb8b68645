"""ER with DropTop (Kim et al., AAAI-24), in all the ways in which it can be set; `slow_droptop.py` is the oracle."""

import pytest

from .slow import SlowLearner, agree, batches, fast

SETTINGS = {
    "default": ({}, {}),
    "longer periods": ({"period": 2, "history": 2}, {}),
    "by task": ({"period": 2, "p_counter": "task"}, {}),
    "common": ({"per": "common"}, {}),
    "algorithm2": ({"shift": "algorithm2"}, {}),
    "small probe": ({"probe": 3}, {}),
    "reference": ({"reference": True}, {}),
    "top": ({"drop": "top"}, {}),
    "constant": ({"drop": "constant"}, {}),
    "random": ({"drop": "random"}, {}),
    "last map alone": ({"attention": "last"}, {}),
    "running statistics": ({"attention_norm": "running"}, {}),
    "soft": ({"mask": "soft"}, {}),
    "nearest": ({"rounding": "nearest"}, {}),
    "separate": ({}, {"replay_forward": "separate"}),
    "separate reference": ({"reference": True}, {"replay_forward": "separate", "iterations": 2}),
    "iterations": ({}, {"iterations": 2}),
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_droptop(settings):
    debias, options = SETTINGS[settings]
    # Not augmented: cells of a black margin tie in attention, and rounding would choose among them.
    learner = fast("er", debias, augment="none", **options)
    slow = SlowLearner(learner)
    # Nine steps of a task: with periods of two, steps of the stream and of the task fall apart.
    agree(learner, slow, batches(18))
    if slow.droptop.adapts:
        assert sum(slow.droptop.decisions.values()) > 0
    if settings in ("default", "algorithm2"):
        assert min(slow.droptop.decisions.values()) > 0  # all three kinds of decision
