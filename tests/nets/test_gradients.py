"""Gradients of groups of samples in models of other people, as GSS takes them."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from droptop import BadRequest, make_learner
from droptop.nets.gradients import RowGroups, group_gradients, layer_passes
from droptop.rng import seeded

from models import CLASSES, ResNet
from toys import SPEC, feed, toy_batches

NAMES = {"first": "maxpool", "last": "layer4"}


def test_layers_that_write_over_others_change_no_score():
    """In-place activations change what a layer gave after it was noted; scores must not notice."""
    scores = []
    for inplace in (True, False):
        with seeded(0, "init"):
            model = ResNet()
        for module in model.modules():
            if isinstance(module, nn.ReLU):
                module.inplace = inplace
        learner = make_learner("gss", SPEC, model=model, **NAMES, memory=40, memory_batch=4)
        scores.append(feed(learner, toy_batches(4)).memory.rows["score"])
    assert len(scores[0].unique()) > 10
    assert torch.equal(*scores)


def by_autograd(learner, x, y):
    """The gradient of every sample alone, over all weights that are trained."""
    weights, rows = list(learner.weights.values()), []
    for image, label in zip(x, y):
        loss = F.cross_entropy(learner.model(learner.normalise(image[None])), label[None])
        gradients = torch.autograd.grad(loss, weights, allow_unused=True)
        rows.append(torch.cat([gradient.flatten() for gradient in gradients if gradient is not None]))
    return F.normalize(torch.stack(rows))


def plain(model):
    pass


def no_affine(model):
    model.bn1 = nn.BatchNorm2d(model.bn1.num_features, affine=False)


def frozen_first(model):
    model.conv1.requires_grad_(requires_grad=False)


class Mixing(nn.Module):
    """A linear layer that sees every position of a map."""

    def __init__(self, channels):
        super().__init__()
        self.mix = nn.Linear(channels, channels)

    def forward(self, x):
        return x + self.mix(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def mixed_first(model):
    model.bn1 = nn.Sequential(model.bn1, Mixing(model.bn1.num_features))


@pytest.mark.parametrize("change", [plain, no_affine, frozen_first, mixed_first])
def test_gradients_of_samples_are_those_of_autograd(change):
    with seeded(0, "init"):
        model = ResNet()
    change(model)
    learner = feed(
        make_learner("gss", SPEC, debias="none", model=model, **NAMES, memory=40, memory_batch=4, augment="none"),
        toy_batches(3),
    )
    learner.model.eval()
    x, y, _ = toy_batches(1, seed=7)[0]
    wanted = by_autograd(learner, x, y)
    parts = [RowGroups(len(y), 1)]
    with torch.enable_grad():
        layers = layer_passes(
            learner.model,
            learner.normalise(x),
            lambda logits: F.cross_entropy(logits, y, reduction="sum"),
            overwrites=True,
        )
        found = F.normalize(torch.cat([g for at in layers for g in group_gradients(at, parts)], 1))
    torch.testing.assert_close(found @ found.T, wanted @ wanted.T, atol=1e-4, rtol=0)


def test_gss_refuses_a_layer_that_is_used_twice():
    class Twice(ResNet):
        def forward(self, x):
            return super().forward(x) + 0 * self.conv1(x).mean()

    with pytest.raises(BadRequest, match="uses each of its layers once"):
        make_learner("gss", SPEC, model=Twice(), **NAMES)


def test_gss_refuses_weights_that_layers_share():
    model = ResNet()
    model.fc = nn.Sequential(model.fc, nn.Linear(CLASSES, CLASSES), nn.Linear(CLASSES, CLASSES))
    model.fc[2].weight = model.fc[1].weight
    with pytest.raises(BadRequest, match="uses each of its layers once"):
        make_learner("gss", SPEC, model=model, **NAMES)


@pytest.mark.parametrize("positions", [1, 2, 8, 108])
def test_gss_refuses_layers_that_mix_samples(positions):
    """However many rows there are: 108 samples is what a step of it passes, 100 of the memory and a batch of 8."""

    class Crossed(Mixing):
        def forward(self, x):
            few = F.adaptive_avg_pool2d(x, (positions, 1))
            return x + self.mix(few.permute(2, 3, 0, 1)).permute(2, 3, 0, 1).mean((2, 3), keepdim=True)

    model = ResNet()
    model.bn1 = nn.Sequential(model.bn1, Crossed(model.bn1.num_features))
    with pytest.raises(BadRequest, match="keep the samples of a batch apart"):
        make_learner("gss", SPEC, model=model, **NAMES)
