"""Debiasers other than DropTop in a model of the user's."""

import copy

import pytest
import torch
import torch.nn.functional as F

import droptop
from droptop import BadBatch, BadRequest
from droptop.debias import MEMBERS, Chosen, Debiaser, Family
from droptop.debias.debiaser import NoSettings
from droptop.nets import untracked
from droptop.rng import generator

from .attaching import X, Y, attached, outcome, same, seeded
from models import CLASSES, ResNet
from toys import toy_learner

FITTING = [name for name, kind in MEMBERS.items() if not kind.needs_logits]
ZERO = {  # of every member, the settings at which it does nothing
    "droptop": {"gamma": 0.0},
    "mixstyle": {"mixstyle.share": 0.0},
    "decouple": {"weight": 0.0},
    "colour": {"colour.share": 0.0},
    "randconv": {"randconv.share": 0.0},
    "poe": {"poe.weight": 0.0},
}
IMAGES = torch.rand(8, 3, 16, 16, generator=torch.Generator().manual_seed(3))


def step(model, layer):
    """Return what a training step sees that asks the layer in all places."""
    layer.see(IMAGES, Y)
    x = layer.images(IMAGES)
    with layer.labels(Y):
        logits = model((x - 0.5) / 0.25)
    model.zero_grad()
    loss = layer.penalised(F.cross_entropy(layer.logits(logits), Y), logits, Y)
    loss.backward()
    gradients = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    return {"loss": loss.detach(), "x": x, "logits": logits.detach()} | gradients


@pytest.mark.parametrize("name", FITTING)
def test_every_member_changes_a_step_and_at_zero_strength_none(name):
    plain = step(*attached(gamma=0.0))
    assert not same(step(*attached(debias=name)), plain)
    assert same(step(*attached(debias=name, **ZERO[name])), plain)


@pytest.mark.parametrize("debias", [*FITTING, "colour+droptop+mixstyle+decouple"])
def test_a_step_is_that_of_a_learner(debias):
    """Bit for bit, from the same draws: images, first map and loss."""
    learner = toy_learner(debias=debias, augment="none")
    model = copy.deepcopy(learner.model)
    layer = droptop.attach(model, "maxpool", "layer4", CLASSES, debias)
    learner.debias.see(IMAGES, Y)
    expected = learner.debias.images(IMAGES)
    logits = learner.logits(learner.model, (expected - 0.5) / 0.25, {"y": Y}, learner.debias)
    loss = learner.debias.penalised(F.cross_entropy(learner.debias.logits(logits), Y), logits, Y)
    seen = step(model, layer)
    assert torch.equal(seen["x"], expected)
    assert torch.equal(seen["logits"], logits)
    assert torch.equal(seen["loss"], loss)


def test_members_act_only_while_there_are_labels_and_the_model_trains():
    model, layer = attached(debias="mixstyle")
    plain = seeded(ResNet)
    assert same(outcome(model, model(X)), outcome(plain, plain(X)))
    model.eval()
    with layer.labels(Y):
        assert torch.equal(model(X), model(X))


@pytest.mark.parametrize("debias", [*FITTING, "droptop+mixstyle"])
def test_a_state_goes_on_exactly(debias):
    first, second = attached(debias=debias), attached(debias=debias, seed=1)
    step(*first)
    second[0].load_state_dict(first[0].state_dict())
    second[1].load_state_dict(first[1].state_dict())
    assert same(step(*first), step(*second))


def test_a_state_from_before_debiasers_had_names_still_loads():
    _, layer = attached()
    layer.kappa.fill_(2.5)
    old = {name.removeprefix("droptop."): value for name, value in layer.state_dict().items()}
    _, new = attached()
    new.load_state_dict(old)
    assert torch.equal(new.kappa, layer.kappa)


def test_copies_have_the_same_members():
    model, layer = attached(debias="droptop+mixstyle", gamma=20.0)
    copied = copy.deepcopy(layer)
    assert copied.model is not model
    assert same(step(copied.model, copied), step(model, layer))


def test_draws_come_from_the_layers_own_generator():
    _, layer = attached(debias="colour", seed=5)
    ours = MEMBERS["colour"](layer.debias.members["colour"].config, CLASSES, generator(5, "debias"))
    torch.manual_seed(0)
    before = torch.get_rng_state()
    assert torch.equal(layer.images(IMAGES), ours.images(IMAGES))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("debias", "options", "said"),
    [
        ("rsc", {}, "a net that droptop builds"),
        ("none", {}, "debias takes a debiaser"),
        ("average", {}, "debias takes a debiaser"),
        ("robust", {}, "which sets average, iterations of our learners: take debias='colour\\+mixstyle\\+decouple'"),
        ("droptop+droptop", {}, "droptop once"),
        ("droptap", {}, "droptop"),
        ("colour+randconv", {"share": 0.5}, "that of several: say 'colour.share' or 'randconv.share'"),
        ("mixstyle", {"gamma": 5.0}, "attach has no option gamma"),
        ("mixstyle", {"mixstyle.share": 2.0}, "a share from 0 to 1"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(debias, options, said):
    with pytest.raises(BadRequest, match=said) as caught:
        attached(debias=debias, **options)
    assert "\n" not in str(caught.value)


def test_each_batch_is_shown_before_its_logits_are_changed():
    _, layer = attached(debias="poe")
    logits = torch.zeros(len(Y), CLASSES)
    for wrong, said in ((logits[:, :2], "logits must have shape"), (logits[:3], "logits must have shape")):
        layer.see(IMAGES, Y)
        with pytest.raises(BadBatch, match=said):
            layer.logits(wrong)
    assert not torch.equal(layer.logits(logits), logits)
    with pytest.raises(BadBatch, match=r"poe looks at every batch before augmentation: call layer.see\(x, y\) first"):
        layer.logits(logits)  # of the next batch, which it was not shown


def test_images_that_are_none_and_missing_intensities_are_refused():
    _, layer = attached(debias="colour")
    for wrong in (X.byte(), X[0], X.tolist()):
        with pytest.raises(BadBatch, match=r"images must be (floating point|a tensor)"):
            layer.images(wrong)
    with pytest.raises(BadRequest, match="has no intensities"):
        layer.kappa  # noqa: B018
    assert not any(layer.adjust(X, Y) for _ in range(6))  # and there is nothing to adapt


class Looking(Debiaser):
    """Keeps the last map that it is shown, and changes nothing."""

    def first_map(self, first, view, labels, direction=None):
        self.seen = view.last()
        return first


class Honest(Looking):
    needs_last = True


@pytest.mark.parametrize("own", [False, True])
def test_a_debiaser_of_ones_own_sees_the_last_map_if_it_says_so(own):
    """In a learner's net and in a user's own model: the last map is that of a plain pass."""
    learner = toy_learner(debias="mixstyle", own=own)

    def look(kind):
        learner.debias = Family([Chosen(kind, NoSettings())], CLASSES, learner.random["debias"])
        learner.logits(learner.model, X, {"y": Y}, learner.debias)
        return next(iter(learner.debias.members.values())).seen

    with torch.no_grad(), untracked(learner.model):
        expected = learner.model.features(X).map
    assert torch.equal(look(Honest), expected)
    if own:
        with pytest.raises(BadRequest, match="needs_last = True"):
            look(Looking)
    else:
        assert torch.equal(look(Looking), expected)
