"""Streams and learners from configurations."""

import torch

from droptop.runs.build import build_learner, build_stream
from droptop.runs.config import configure

from plans import plain


def test_both_arms_get_the_same_stream_and_weights():
    config = configure(width=4)
    arms = [plain(config), config]
    streams = [build_stream(arm, 3) for arm in arms]
    learners = [build_learner(arm, stream, 3) for arm, stream in zip(arms, streams)]
    assert torch.equal(streams[0].train.x, streams[1].train.x)
    assert all(torch.equal(a, b) for a, b in zip(streams[0].order, streams[1].order))
    states = [learner.state_dict() for learner in learners]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
