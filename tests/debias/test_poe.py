"""The product of experts against a net of torch's own layers, torch's SGD, and a loop over rows."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from droptop import BadBatch, BadRequest
from droptop.debias import PoE
from droptop.debias.poe import PoEConfig, small
from droptop.methods import METHODS
from droptop.rng import generator

from toys import CLASSES as CLASSES_OF_TOYS
from toys import toy_batches, toy_learner

CLASSES = 4
RANDOM = torch.Generator().manual_seed(0)
BATCHES = [(torch.rand(6, 3, 40, 48, generator=RANDOM), torch.randint(CLASSES, (6,), generator=RANDOM)) for _ in "abc"]
LOGITS = 3 * torch.randn(6, CLASSES, generator=RANDOM)


def member(**options):
    return PoE(PoEConfig(**options), CLASSES, generator(0, "debias"))


class SlowNet(nn.Module):
    """The weak net as the header describes it, with the weights of a member."""

    def __init__(self, member):
        super().__init__()
        self.near = nn.Conv2d(3, 16, 5, stride=2, padding=2, bias=False)
        self.far = nn.Conv2d(16, 32, 3, stride=2, padding=1, bias=False)
        self.head = nn.Linear(64, CLASSES, bias=False)
        for name in ("near", "far", "head"):
            getattr(self, name).weight.data = getattr(member, name).clone()

    def forward(self, x):
        x = self.far(self.near(x).relu()).relu().flatten(2)
        return self.head(torch.cat([x.max(2).values, x.mean(2)], 1))


@pytest.mark.parametrize("rounds", [1, 3])
def test_the_weak_net_answers_and_then_learns(rounds):
    """Over three batches: its answers are those from before each batch, and its weights those of torch's SGD."""
    poe = member(rate=0.05, rounds=rounds)
    slow = SlowNet(poe)
    sgd = torch.optim.SGD(slow.parameters(), lr=0.05, momentum=0.9)
    for x, y in BATCHES:
        answers = slow(small(x)).detach()
        for _ in range(rounds):
            sgd.zero_grad()
            F.cross_entropy(slow(small(x)), y).backward()
            sgd.step()
        poe.see(x, y)
        torch.testing.assert_close(poe.weak, answers)
        for name in ("near", "far", "head"):
            torch.testing.assert_close(getattr(poe, name), getattr(slow, name).weight.data)


@pytest.mark.parametrize("weight", [0.5, 1.0, 2.0])
def test_the_belief_is_the_product_of_both(weight):
    """Row by row: the learner's belief times the weak net's to the power of the weight, normalised."""
    poe, (x, y) = member(weight=weight), BATCHES[0]
    poe.see(x, y)
    joined = poe.logits(LOGITS).softmax(1)
    for mine, theirs, found in zip(LOGITS.softmax(1).tolist(), poe.weak.softmax(1).tolist(), joined.tolist()):
        product = [a * b**weight for a, b in zip(mine, theirs)]
        assert found == pytest.approx([value / sum(product) for value in product], rel=1e-4)


def test_only_what_contradicts_the_weak_net_is_taught():
    """A weak net sure of class 0: a row of class 0 teaches next to nothing, one of class 1 more than it does alone."""
    poe, y = member(), torch.tensor([0, 1])
    poe.weak = torch.tensor([[9.0, 0, 0, 0], [9.0, 0, 0, 0]])
    logits = torch.zeros(2, CLASSES, requires_grad=True)
    F.cross_entropy(poe.logits(logits), y).backward()
    taught, alone = logits.grad.norm(dim=1), 0.5 * math.sqrt(0.75**2 + 3 * 0.25**2)
    assert taught[0] < 0.01 * alone
    assert taught[1] > 1.5 * alone


@pytest.mark.parametrize("method", [name for name, kind in METHODS.items() if kind.takes(PoE) and name != "joint"])
def test_no_method_unlearns_what_the_weak_net_knows(method):
    """Where the weak net is sure and right of every row, no loss pushes the right logit of a row down.

    A penalty would: it takes away a cross-entropy that the loss of a method may not have.
    """
    learner, (x, y, task) = toy_learner(method, "poe", augment="none"), toy_batches(1)[0]
    poe, see, seen = learner.debias.members["poe"], learner.debias.members["poe"].see, []
    loss = learner.loss

    def sure(images, labels):
        see(images, labels)
        poe.weak = 20.0 * F.one_hot(labels, CLASSES_OF_TOYS)

    def kept(logits, batch):
        logits.retain_grad()
        seen.append((logits, batch.y))
        return loss(logits, batch)

    poe.see, learner.loss = sure, kept
    learner.observe(x, y, task)
    ((logits, labels),) = seen
    right = logits.grad.gather(1, labels[:, None])
    assert right.max() < 1e-3
    assert right.abs().max() < 1e-3  # and so sure a weak net leaves nothing to teach


def test_derpp_is_refused_which_compares_logits_with_stored_ones():
    with pytest.raises(BadRequest, match="--debias poe takes a method that compares logits with labels alone, not DER"):
        toy_learner("derpp", "poe")


def test_a_learner_shows_it_what_comes_before_augmentation():
    """The weak net sees stream and memory as they are, on a scale from 0 to 1, once per iteration."""
    learner, shown = toy_learner(debias="colour+poe", augment="crop-flip", iterations=2), []
    poe, see = learner.debias.members["poe"], learner.debias.members["poe"].see
    poe.see = lambda x, labels: shown.append((x, labels)) or see(x, labels)
    retrieve, replays = learner.retrieve, []
    learner.retrieve = lambda stream: replays.append(retrieve(stream)) or replays[-1]
    for x, y, task in toy_batches(3):
        shown.clear(), replays.clear()
        learner.observe(x, y, task)
        assert len(shown) == 2
        for (images, labels), replayed in zip(shown, replays):
            assert torch.equal(images, torch.cat([x, replayed["x"]]).float() / 255)
            assert torch.equal(labels, torch.cat([y, replayed["y"]]))


@pytest.mark.parametrize("channels", [1, 3, 6])
def test_small_images_are_means_of_blocks(channels):
    x = torch.rand(4, channels, 64, 96, generator=torch.Generator().manual_seed(1))
    blocks = x.view(4, channels, 32, 2, 32, 3).mean((3, 5))
    three = blocks.expand(4, 3, 32, 32) if channels == 1 else blocks.view(4, 3, channels // 3, 32, 32).mean(2)
    seen = small(x)
    for channel in range(3):
        values = three[:, channel]
        expected = (values - values.mean()) / values.std(correction=0)
        torch.testing.assert_close(seen[:, channel], expected, rtol=0.01, atol=0.01)  # the variance gets 1e-5


def test_images_of_one_value_are_no_division_by_zero():
    assert small(torch.ones(2, 3, 8, 8)).isfinite().all()


def test_no_weight_changes_no_logits_and_learns_nothing():
    poe, (x, y) = member(weight=0.0), BATCHES[0]
    before = poe.near.clone()
    poe.see(x, y)
    assert poe.logits(LOGITS) is LOGITS
    assert torch.equal(poe.near, before)


def test_a_loop_that_does_not_show_it_the_batch_is_told_so():
    poe, (x, y) = member(), BATCHES[0]
    for _ in range(2):
        with pytest.raises(BadBatch, match=r"call layer.see\(x, y\) for the same rows first"):
            poe.logits(LOGITS)
        poe.see(x[:5], y[:5])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_images_of_any_floating_point_are_seen(dtype):
    poe, (x, y) = member(), BATCHES[0]
    poe.see(x.to(dtype), y)
    assert poe.weak.dtype == torch.float32


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"weight": -1.0}, "--poe.weight takes a number from 0, not -1.0"),
        ({"rate": 0.0}, "--poe.rate takes a number above 0 and up to 1, not 0.0"),
        ({"rate": 30.0}, "--poe.rate takes a number above 0 and up to 1, not 30.0"),
        ({"rounds": 0}, "--poe.rounds takes a number from 1, not 0"),
    ],
)
def test_bad_settings_are_refused(options, says):
    with pytest.raises(BadRequest) as error:
        PoEConfig(**options)
    assert str(error.value) == says
