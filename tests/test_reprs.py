"""What things say they are when they are looked at: in one or two lines, never their tensors."""

import pytest
import torch
from torch import nn

import droptop
from droptop.types import Subset


@pytest.fixture(scope="module")
def stream():
    return droptop.make_stream("fashion-sticker", seed=3, limit=64, tasks=2)


@pytest.fixture(scope="module")
def learner(stream):
    learner = droptop.make_learner("er", stream, "droptop+mixstyle", seed=5, width=4, memory=50)
    for x, y, task, _ in list(stream)[:3]:
        learner.observe(x, y, task)
    return learner


def layer():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3, stride=2), nn.Flatten(), nn.LazyLinear(7))
    model(torch.rand(2, 3, 9, 9))
    return droptop.attach(model, "0", "1", 7, seed=6, gamma=2.5)


def test_nothing_dumps_tensors(stream, learner):
    test = stream.tests["removed"]
    batch = next(iter(stream))
    history = droptop.learn(learner, [(batch.x, batch.y)], {"removed": test[torch.arange(20)]})
    attached = layer()
    things = [stream, learner, learner.memory, test, batch, history, attached, attached.droptop]
    things += [Subset(test, torch.arange(9)), droptop.Samples(test.x[:0], test.y[:0]), *learner.debias.members.values()]
    for thing in things:
        assert "tensor(" not in repr(thing)
        assert len(repr(thing).splitlines()) <= 2
        assert len(repr(thing)) < 300


def test_a_stream_says_what_there_is_to_learn(stream):
    said = repr(stream)
    assert "fashion-sticker: 10 classes in 2 tasks, 128 images of 3 x 32 x 32 in 4 steps" in said
    for name, test in stream.tests.items():
        assert f"{name} ({len(test):,})" in said
    assert "seed 3" in said


def test_a_learner_says_how_far_it_is(stream, learner):
    fresh = droptop.make_learner("derpp", stream, "none", seed=5, width=4, memory=50)
    weights = sum(weight.numel() for weight in fresh.model.parameters())
    assert f"DERpp(ResNet18 of {weights:,} weights for 10 classes of 3 x 32 x 32, debias none, seed 5" in repr(fresh)
    assert "step 0 in task 0, 0 classes seen, 0 of 50 samples in memory" in repr(fresh)
    x, y, *_ = next(iter(stream))
    fresh.observe(x, y, 0)
    seen = len(set(y.tolist()))
    assert f"step 1 in task 0, {seen} classes seen, 32 of 50 samples in memory" in repr(fresh)
    assert "debias droptop+mixstyle, seed 5" in repr(learner)


def test_looking_at_a_learner_changes_nothing(stream):
    one, other = (droptop.make_learner("er", stream, width=4, memory=50) for _ in range(2))
    for x, y, task, _ in stream:
        one.observe(x, y, task)
        repr(one), repr(one.debias.droptop), repr(stream)
        other.observe(x, y, task)
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())


def test_samples_say_what_is_known_of_them(stream):
    test = stream.tests["random"]
    assert repr(test).startswith(f"Samples({len(test):,} images of 3 x 32 x 32, uint8, labels 0 to 9, follows")
    assert "follows" not in repr(droptop.Samples(test.x, test.y))
    assert repr(Subset(test, torch.arange(9))).startswith(f"Subset(9 of Samples({len(test):,} images")
    assert repr(next(iter(stream))) == "Batch(32 images of 3 x 32 x 32, uint8, task 0, with their shortcut)"


def test_a_layer_says_where_it_is_and_how_much_it_drops():
    attached = layer()
    assert repr(attached) == "Attached('0' and '1' of Sequential, droptop, gamma=2.5, 7 classes, seed 6)"
    attached.droptop.intensity.kappa[2] = 1.25
    assert repr(attached.droptop).startswith("DropTop(gamma=2.5, kappa_0=")
    assert repr(attached.droptop).endswith("7 intensities, kappa 1.25 to 2.5")
