"""ER (Rolnick et al., 2019) by itself: `slow.py` is its oracle, and that of all settings which every method has."""

import dataclasses

import pytest
import torch

from .slow import SPEC, SlowLearner, agree, batches, close, fast

SETTINGS = {
    "plain": {},
    "plain images": {"augment": "none"},
    "momentum": {"momentum": 0.9, "weight_decay": 0.01},
    "iterations": {"iterations": 3},
    "separate": {"replay_forward": "separate"},
    "average": {"average": True, "average_decay": 0.5},
    "large memory": {"memory": 100},  # which never fills
    "large memory batch": {"memory": 3, "memory_batch": 7},  # larger than the memory: stream rows stand in to the end
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_er(settings):
    learner = fast("er", **SETTINGS[settings])
    slow = SlowLearner(learner)
    agree(learner, slow, batches(12))
    if settings == "plain":
        assert slow.offered == 52  # the memory of 9 overflowed, and holds samples of both tasks
        assert {row["y"] // 2 for row in slow.memory} == {0, 1}


def test_plain_predictions_are_by_the_last_weights():
    learner = fast("er", average=True, average_decay=0.5)
    slow, stream = SlowLearner(learner), batches(6)
    agree(learner, slow, stream)
    x = stream[0][0]
    with_all = slow.classify(slow.nets[0], [{"x": image} for image in x])
    close(learner.predict(x, plain=True)[:, sorted(slow.seen)], with_all[:, sorted(slow.seen)])
    assert not torch.allclose(learner.predict(x), learner.predict(x, plain=True))


def test_bytes():
    spec = dataclasses.replace(SPEC, dtype=torch.uint8)
    learner = fast("er", spec=spec)
    agree(learner, SlowLearner(learner), batches(8, spec=spec))
