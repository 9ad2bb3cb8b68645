"""Streams and learners from configurations."""

import pytest
import torch

from droptop import BadRequest
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


def test_a_stream_whose_tasks_end_in_one_image_is_refused_where_batchnorm_cannot_take_it():
    def build(limit, method="finetune", **options):
        config = configure("fashion", method, "none", width=4, limit=limit, stem="7x7/2-pool", **options)
        return build_learner(config, build_stream(config, 0), 0)

    for limit, batch in ((65, 32), (4, 1)):
        with pytest.raises(
            BadRequest, match=r"task 0 of fashion ends in a batch of 1, and .*; leave out --no-drop-last"
        ):
            build(limit, drop_last=False, batch=batch)
    build(66, drop_last=False)
    build(64, drop_last=False)  # whose last batch is full
    build(65)
    build(65, "er", drop_last=False)
