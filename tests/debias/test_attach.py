"""The layer in other people's models, against the same equations applied by hand."""

import copy
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import droptop
from droptop import DropTop
from droptop.debias.attach_options import chosen
from droptop.memory import Rows
from droptop.nets import untracked
from droptop.rng import generator

from .attaching import X, Y, attached, outcome, same, seeded
from models import CLASSES, ConvNeXt, ResNet, VisionTransformer
from toys import toy_learner


def by_hand(model, stem, trunk, options):
    """Logits of a model in two parts, with the layer between them; `trunk` gives the last map and the logits."""
    layer = DropTop(chosen("droptop", options)[0].config, CLASSES, generator(0, "debias"))
    first, back = stem(X)
    with torch.no_grad(), untracked(model):
        last, _ = trunk(back(first))
    _, logits = trunk(back(layer(first, lambda: last, Y)))
    return layer, logits


def resnet_parts(model):
    def trunk(first):
        last = model.layer4(model.layer1(first))
        return last, model.fc(model.avgpool(last).flatten(1))

    return lambda x: (model.maxpool(model.relu(model.bn1(model.conv1(x)))), lambda map: map), trunk


def convnext_parts(model):
    def trunk(first):
        last = model.stages[1]["blocks"](model.down(model.stages[0]["blocks"](first)))
        return last, model.head(last.mean((2, 3)))

    return lambda x: (model.stem(x), lambda map: map), trunk


def vit_parts(model):
    def stem(x):
        tokens = model.patch_embed(x)
        return tokens.transpose(1, 2).reshape(8, 8, 4, 4), lambda map: map.reshape(8, 8, 16).transpose(1, 2)

    def trunk(tokens):
        tokens = torch.cat([model.cls_token.expand(8, -1, -1), tokens + model.pos_embed], 1)
        last = model.blocks(tokens)
        return last[:, 3:].transpose(1, 2).reshape(8, 8, 4, 4), model.head(model.norm(last)[:, 0])

    return stem, trunk


MODELS = {
    "resnet": (ResNet, "maxpool", "layer4", resnet_parts),
    "convnext": (ConvNeXt, "stem", "stages.1.blocks", convnext_parts),
    "vit": (VisionTransformer, "patch_embed", "blocks.1", vit_parts),
}


@pytest.mark.parametrize(
    "options",
    [{}, {"gamma": 30.0, "mask": "soft"}, {"gamma": 20.0, "attention": "last"}, {"drop": "random", "gamma": 40.0}],
    ids=str,
)
@pytest.mark.parametrize("kind", MODELS)
def test_the_layer_gives_what_its_equations_give_by_hand(kind, options):
    make, first, last, parts = MODELS[kind]
    expected = seeded(make)
    layer, logits = by_hand(expected, *parts(expected), options)
    model, ours = attached(make, first, last, **options)
    with ours.labels(Y):
        debiased = model(X)
    assert torch.equal(ours.trace.mask, layer.last.mask)
    assert 0 < (ours.trace.mask < 1).float().mean() < 0.5
    ours_saw, expected_saw = outcome(model, debiased), outcome(expected, logits)
    assert {name: ours_saw[name] for name in expected_saw}.keys() == ours_saw.keys()
    for name, value in expected_saw.items():
        torch.testing.assert_close(ours_saw[name], value, rtol=1e-5, atol=1e-6, msg=name)


@pytest.mark.parametrize("debias", ["droptop", "no-fusion", "random"])
def test_the_layer_gives_what_the_learner_gives(debias):
    """Bit for bit: mask, loss, gradients and statistics."""
    learner = toy_learner(debias=debias)
    model = copy.deepcopy(learner.model)
    settings = {"no-fusion": {"attention": "last"}, "random": {"drop": "random"}}.get(debias, {})
    layer = droptop.attach(model, "maxpool", "layer4", CLASSES, **settings)
    rows: Rows = {"y": Y}
    expected = outcome(learner.model, learner.logits(learner.model, X, rows, learner.debias))
    with layer.labels(Y):
        logits = model(X)
    assert torch.equal(layer.trace.mask, learner.debias.droptop.last.mask)
    assert same(outcome(model, logits), expected)


@pytest.mark.parametrize("kind", MODELS)
def test_the_model_is_unchanged_at_gamma_0_without_labels_and_in_eval_mode(kind):
    make, first, last, _ = MODELS[kind]
    plain = seeded(make)
    plain = outcome(plain, plain(X))
    model, layer = attached(make, first, last, gamma=0.0)
    with layer.labels(Y):
        logits = model(X)
    assert same(outcome(model, logits), plain)
    model, layer = attached(make, first, last, gamma=50.0)
    before = copy.deepcopy(layer.state_dict())
    assert same(outcome(model, model(X)), plain)
    model.eval()
    with layer.labels(Y):
        assert torch.equal(model(X), copy.deepcopy(model)(X))
    assert same(before, layer.state_dict())


def test_labels_nest_and_survive_errors():
    model, layer = attached(gamma=30.0)
    kappa = layer.kappa
    kappa.copy_(torch.tensor([0.0, 30.0, 0.0, 30.0]))
    layer.droptop.intensity.candidates.copy_(kappa.expand(2, -1))
    low, high = torch.zeros_like(Y), torch.ones_like(Y)

    def top(labels):
        with layer.labels(labels) if labels is not None else nullcontext():
            model(X)
        hit = layer.trace.attention.flatten(1).argmax(1)
        return (layer.trace.mask.flatten(1).gather(1, hit[:, None]) == 0).float().mean().item()

    with layer.labels(low):
        assert top(high) == 1
        assert top(None) < 1  # the outer ones again
        with pytest.raises(ZeroDivisionError), layer.labels(high):
            raise ZeroDivisionError
        assert top(None) < 1
        with pytest.raises(RuntimeError):
            model(X[:, :2])  # the model's own complaint
        assert top(None) < 1
    assert torch.equal(model(X), model(X))


def test_the_attention_pass_leaves_torchs_generator_alone():
    """The attention pass draws nothing: with gamma 0 dropout then drops what it drops in a plain model."""
    results = []
    for debiased in (False, True):
        model, layer = attached(model=seeded(ResNet, dropout=0.5), gamma=0.0)
        torch.manual_seed(3)
        with layer.labels(Y) if debiased else nullcontext():
            results.append(outcome(model, model(X)) | {"generator": torch.get_rng_state()})
    assert same(*results)


def test_autocast_gives_every_weight_a_gradient():
    model, layer = attached()
    with torch.autocast("cpu", torch.bfloat16), layer.labels(Y):
        loss = F.cross_entropy(model(X), Y)
    loss.backward()
    assert all(weight.grad is not None for name, weight in model.named_parameters() if "unused" not in name)


def test_later_writes_into_the_last_map_do_not_change_the_attention():
    """Even where what follows writes into it."""
    stem, body = nn.Conv2d(3, 6, 1), nn.Conv2d(6, 5, 3, stride=2, padding=1)
    model = nn.Sequential(stem, body, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 4))
    layer = droptop.attach(model, "0", "1", classes=4)
    x = torch.rand(2, 3, 8, 8)
    with layer.labels(torch.tensor([0, 1])):
        model(x)
    with torch.no_grad():
        assert torch.equal(layer.trace.attention, droptop.fuse(stem(x), body(stem(x))))
