"""Learners with a model of somebody's own."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from droptop import BadRequest, Spec, make_learner
from droptop.methods import METHODS
from droptop.nets import Adapted, NetConfig, build
from droptop.nets.gradients import RowGroups, group_gradients
from droptop.rng import seeded
from droptop.runs.config import configure

from models import CLASSES, ConvNeXt, ResNet, VisionTransformer
from toys import QUICK, SMALL, SPEC, differences, feed, toy_batches

NAMES = {"first": "maxpool", "last": "layer4"}


@pytest.mark.parametrize("method", ["er", "derpp", "mir", "gss", "aser", "er-ace"])
def test_a_net_by_its_submodules_learns_as_by_its_parts(method):
    """droptop's own ResNet, as a backbone and as if it were somebody else's: bit for bit the same."""
    states = []
    for adapted in (False, True):
        config = configure("fashion", method, "droptop", **SMALL, **QUICK)
        model = build(NetConfig(width=4), 3, CLASSES, 0)
        if adapted:
            model = Adapted(model, "maxpool", "layer4")
        learner = METHODS[method](model, SPEC, config.learner, config.droptop)
        states.append(feed(learner, toy_batches(5)).state_dict())
    by_parts, by_names = states
    renamed = {name.replace("model.net.", "model."): value for name, value in by_names.items()}
    assert differences(by_parts, renamed) == []


def test_the_model_is_trained_from_its_own_weights():
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
def test_other_kinds_of_models(method, make, first, last):
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


def test_gss_sees_through_layers_that_write_over_others():
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
def test_gss_knows_the_gradients_of_what_is_trained(change):
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
def test_gss_refuses_layers_whose_rows_are_no_samples(positions):
    """However many rows there are: 108 samples is what a step of it passes, 100 of the memory and a batch of 8."""

    class Crossed(Mixing):
        def forward(self, x):
            few = F.adaptive_avg_pool2d(x, (positions, 1))
            return x + self.mix(few.permute(2, 3, 0, 1)).permute(2, 3, 0, 1).mean((2, 3), keepdim=True)

    model = ResNet()
    model.bn1 = nn.Sequential(model.bn1, Crossed(model.bn1.num_features))
    with pytest.raises(BadRequest, match="keep the samples of a batch apart"):
        make_learner("gss", SPEC, model=model, **NAMES)


def reflected():
    model = ResNet()
    model.conv1.padding_mode = "reflect"
    return model


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"method": "gss", "model": reflected()}, r"gss takes .* not net.conv1 .Conv2d"),
        ({"model": ResNet(classes=5)}, r"model gives \(5,\) a sample, not 4 logits"),
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
def test_what_cannot_be_met(options, says):
    given = {"method": "er", "stream": SPEC, "model": ResNet(), **NAMES} | options
    torch.manual_seed(0)
    before = torch.get_rng_state()
    with pytest.raises(BadRequest, match=says):
        make_learner(**given)
    assert torch.equal(before, torch.get_rng_state())


def test_a_model_that_somebody_put_into_eval_mode_does_not_learn_undebiased():
    model = ResNet()
    learner = make_learner("er", SPEC, model=model, **NAMES, memory=20, memory_batch=4)
    model.eval()
    with pytest.raises(BadRequest, match="in eval mode"):
        feed(learner, toy_batches(1))


def test_a_backbone_needs_no_names():
    model = build(NetConfig(width=4), 3, 2, 0)
    learner = make_learner("er", Spec((3, 16, 16), ("cat", "dog")), model=model)
    assert learner.model is model
