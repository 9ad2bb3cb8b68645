"""Debiasers together: in which order they act, what they draw from, and what becomes of the loss."""

import pytest
import torch
import torch.nn.functional as F

from droptop.debias import MEMBERS, Chosen, Debiaser, Family, View
from droptop.debias.debiaser import NoSettings
from droptop.errors import DroptopError
from droptop.rng import generator

from toys import SPEC, feed, toy_batches, toy_learner


class Double(Debiaser):
    """Doubles whatever it sees."""

    def images(self, x):
        return 2 * x

    def first_map(self, first, view, labels, direction=None):
        return 2 * first

    def logits(self, logits):
        return 2 * logits

    def penalty(self, logits, labels):
        return 2 * logits.sum()


class Increase(Debiaser):
    """Adds one to whatever it sees, and once more for the direction."""

    def images(self, x):
        return x + 1

    def first_map(self, first, view, labels, direction=None):
        return first + 1 + (direction or 0)

    def logits(self, logits):
        return logits + 1

    def penalty(self, logits, labels):
        return labels.sum()


class Silent(Debiaser):
    """Acts nowhere."""


def family(*kinds):
    return Family([Chosen(kind, NoSettings()) for kind in kinds], 4, generator(0, "debias"))


@pytest.mark.parametrize(("kinds", "expected"), [((Double, Increase), 7.0), ((Increase, Double), 8.0)])
def test_members_act_in_the_order_in_which_they_are_named(kinds, expected):
    together, three = family(*kinds), torch.full((1, 1, 1, 1), 3.0)
    assert together.images(three) == expected
    assert together.logits(three) == expected
    assert together.first_map(three, View(None, None), torch.zeros(1)) == expected
    with_direction = together.first_map(three, View(None, None), torch.zeros(1), 1)
    assert with_direction == (8.0 if kinds[0] is Double else 10.0)


@pytest.mark.parametrize(("answer", "given"), [(None, "a NoneType"), (torch.zeros(2, 3), r"shape \(2, 3\)")])
def test_logits_of_another_shape_are_a_fault_of_the_debiaser(answer, given):
    class Wrong(Debiaser):
        def logits(self, logits):
            return answer

    with pytest.raises(DroptopError, match=rf"^Wrong.logits is to give logits of shape \(2, 4\), not {given}$"):
        family(Wrong).logits(torch.zeros(2, 4))


def test_penalties_are_added_to_the_loss():
    logits, labels = torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.tensor([1, 1])
    assert family(Double, Increase).penalised(torch.tensor(0.5), logits, labels) == 0.5 + 22 + 2
    assert family(Silent).penalised(torch.tensor(0.5), logits, labels) == 0.5


def test_who_acts_nowhere_is_not_asked():
    together = family(Silent, Double)
    assert [type(member) for member in together.act_on("images")] == [Double]
    assert family(Silent).act_on("first_map") == []


def test_state_goes_by_the_names_of_members():
    state = toy_learner(debias="mixstyle+droptop").debias.state_dict()
    assert {name.partition(".")[0] for name in state} == {"droptop"}
    assert "droptop.intensity.kappa" in state


def test_a_learner_runs_images_through_the_family_after_augmentation_and_before_normalisation():
    """From 0 to 1, though they came as bytes."""
    learner = toy_learner(debias="none", augment="none")
    learner.debias = family(Double, Increase)
    x = toy_batches(1)[0][0]
    torch.testing.assert_close(learner.prepare(x), (2 * x.float() / 255 + 1 - SPEC.mean) / SPEC.std)
    assert torch.equal(learner.normalise(x), (x.float() / 255 - SPEC.mean) / SPEC.std)  # predictions see nothing of it


@pytest.mark.parametrize("method", ["er", "derpp", "l2p"])
def test_the_loss_of_a_step_has_the_penalty_in_it(method):
    """Its logits are those of the whole batch that was learned from; weights do not move before."""
    batch = toy_batches(1)[0]
    plain, decoupled = (toy_learner(method, debias) for debias in ("none", "decouple"))
    seen, loss = [], plain.loss
    plain.loss = lambda logits, joined: seen.append((logits.detach(), joined.y)) or loss(logits, joined)
    difference = decoupled.observe(*batch) - plain.observe(*batch)
    ((logits, labels),) = seen
    assert difference.item() == pytest.approx(0.01 * logits.square().mean().item(), rel=1e-3)
    assert len(logits) == len(labels) > len(batch[0])
    if method == "er":
        expected = F.cross_entropy(logits, labels) + 0.01 * logits.square().mean()
        again = toy_learner(method, "decouple").observe(*batch)
        assert again.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("debias", [*MEMBERS, "robust-light+droptop"])
def test_draws_move_no_other_generator(debias):
    """Both arms of a comparison then see the same samples, augmented alike and replayed alike."""
    batches = toy_batches(6)
    plain, debiased = (feed(toy_learner("er", name), batches) for name in ("none", debias))
    for purpose in ("augment", "memory"):
        assert torch.equal(plain.random[purpose].get_state(), debiased.random[purpose].get_state())
    drew = not torch.equal(plain.random["debias"].get_state(), debiased.random["debias"].get_state())
    assert drew == (debias != "decouple")  # which draws nothing
    assert torch.equal(plain.memory.rows["x"], debiased.memory.rows["x"])
