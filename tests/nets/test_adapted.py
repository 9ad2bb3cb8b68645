"""Learners with a model of somebody's own."""

import pytest
import torch
from torch import nn

from droptop import BadRequest, Spec, make_learner
from droptop.methods import METHODS
from droptop.nets import Adapted, NetConfig, build
from droptop.rng import seeded
from droptop.runs.config import configure

from models import CLASSES, ConvNeXt, ResNet, VisionTransformer
from toys import QUICK, SMALL, SPEC, differences, feed, toy_batches

NAMES = {"first": "maxpool", "last": "layer4"}


@pytest.mark.parametrize("method", ["er", "derpp", "mir", "gss", "aser", "er-ace"])
def test_a_net_given_by_its_submodules_learns_to_the_same_bits(method):
    """droptop's own ResNet, as a backbone and as if it were somebody else's: bit for bit the same."""
    states = []
    for adapted in (False, True):
        config = configure("fashion", method, "droptop", **SMALL, **QUICK)
        model = build(NetConfig(width=4), 3, CLASSES, 0)
        if adapted:
            model = Adapted(model, "maxpool", "layer4")
        learner = METHODS[method](model, SPEC, config.learner, config.chosen)
        states.append(feed(learner, toy_batches(5)).state_dict())
    by_parts, by_names = states
    renamed = {name.replace("model.net.", "model."): value for name, value in by_names.items()}
    assert differences(by_parts, renamed) == []


def test_training_begins_with_the_weights_that_the_model_has():
    model = ResNet()
    before = model.fc.weight.clone()
    learner = make_learner("er", SPEC, model=model, **NAMES, memory=20, memory_batch=4)
    assert torch.equal(model.fc.weight, before)
    feed(learner, toy_batches(2))
    assert not torch.equal(model.fc.weight, before)
    x = toy_batches(1)[0][0]
    with torch.no_grad():
        expected = model.eval()(learner.normalise(x))
    assert torch.equal(learner.predict(x)[:, learner.seen], expected[:, learner.seen])


@pytest.mark.parametrize(
    ("make", "first", "last"), [(ConvNeXt, "stem", "stages.1.blocks"), (VisionTransformer, "patch_embed", "blocks.1")]
)
@pytest.mark.parametrize("method", ["er", "mir", "aser"])
def test_convnext_and_vit_learn(method, make, first, last):
    with seeded(0, "init"):
        model = make()
    learner = make_learner(method, SPEC, model=model, first=first, last=last, memory=20, memory_batch=4, lr=0.01)
    assert all(learner.observe(*batch).isfinite() for batch in toy_batches(4))
    assert learner.trace is not None
    assert (learner.trace.mask == 0).any()


def test_frozen_weights_stay_and_are_no_part_of_the_state():
    for method in ("er", "mir"):
        model = ResNet(frozen=True)
        before = model.conv1.weight.clone()
        learner = feed(make_learner(method, SPEC, model=model, **NAMES, memory=20, memory_batch=4), toy_batches(3))
        assert torch.equal(model.conv1.weight, before)
        assert "model.net.conv1.weight" not in learner.state_dict()


def reflected():
    model = ResNet()
    model.conv1.padding_mode = "reflect"
    return model


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"method": "gss", "model": reflected()}, r"gss takes .* not net.conv1 .Conv2d"),
        ({"model": ResNet(classes=5)}, r"model gives \(5,\) per sample, not 4 logits"),
        ({"model": nn.Identity()}, "first takes the name of a submodule"),
        ({"model": ResNet(dropout=0.5)}, "draws at random .* droptop.attach"),
        ({"stream": Spec((1, 16, 16), tuple("abcd"))}, r"model does not take images of \(1, 16, 16\): Given groups=1"),
        ({"first": None}, "model takes first and last"),
        ({"model": None}, "--model takes the model that first and last name"),
        ({"last": "layr4"}, "last takes .* has layer4"),
        ({"width": 8}, "--width is for nets that droptop builds"),
        ({"stem": "3x3"}, "--stem is for nets"),
        ({"precision": "bf16"}, "--precision is for nets"),
        ({"method": "l2p"}, "--method l2p takes a ViT by --weights"),
        (
            {"method": "gss", "model": ConvNeXt(), "first": "stem", "last": "down"},
            r"gss takes .* not net.stem.1 .Chann",
        ),
        ({"last": "avgpool", "attention": "last"}, "larger than 1 x 1: let last name an earlier"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_models_that_cannot_learn_are_refused(options, says):
    given = {"method": "er", "stream": SPEC, "model": ResNet(), **NAMES} | options
    torch.manual_seed(0)
    before = torch.get_rng_state()
    with pytest.raises(BadRequest, match=says):
        make_learner(**given)
    assert torch.equal(before, torch.get_rng_state())


def test_a_model_in_eval_mode_does_not_learn():
    model = ResNet()
    learner = make_learner("er", SPEC, model=model, **NAMES, memory=20, memory_batch=4)
    model.eval()
    with pytest.raises(BadRequest, match="in eval mode"):
        feed(learner, toy_batches(1))


def test_a_backbone_needs_no_names():
    model = build(NetConfig(width=4), 3, 2, 0)
    learner = make_learner("er", Spec((3, 16, 16), ("cat", "dog")), model=model)
    assert learner.model is model
