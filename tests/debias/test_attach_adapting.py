"""The intensities of an attached layer: when they are probed, how they move, and their state."""

import copy

import pytest
import torch
import torch.nn.functional as F

import droptop
from droptop import BadRequest

from .attaching import X, Y, attached
from models import CLASSES
from toys import QUICK, feed, toy_batches, toy_learner


def test_the_probe_records_what_the_learners_records():
    learner = feed(toy_learner(memory=20, period=1000), toy_batches(4))
    model, rows = copy.deepcopy(learner.model), learner.memory.read(torch.arange(20))
    layer = droptop.attach(model, "maxpool", "layer4", CLASSES, **QUICK | {"period": 2})
    images = learner.normalise(rows["x"])
    learner.probe()
    assert [layer.adjust(images, rows["y"]) for _ in range(2)] == [False, True]
    for name, value in learner.debias.droptop.intensity.state_dict().items():
        torch.testing.assert_close(layer.droptop.intensity.state_dict()[name], value, equal_nan=True)


def test_a_small_probe_draws_as_the_learners_does_while_the_memory_fills():
    """To the bit, in what it draws, records, and leaves to be drawn by the masks; the layer knows no empty rows."""
    learner, batches = toy_learner(memory=20, period=1000, probe=6), toy_batches(4)
    model = copy.deepcopy(learner.model)
    layer = droptop.attach(model, "maxpool", "layer4", CLASSES, **QUICK | {"probe": 6})
    sizes = []
    for batch in batches:
        feed(learner, [batch])
        sizes.append(int(learner.memory.size))
        model.load_state_dict(learner.model.state_dict())
        layer.debias.generator.set_state(learner.random["debias"].get_state())
        rows = learner.memory.read(torch.arange(sizes[-1]))
        for _ in range(3):
            learner.probe()
            layer.probe(learner.normalise(rows["x"]), rows["y"])
            for name, value in learner.debias.droptop.intensity.state_dict().items():
                torch.testing.assert_close(
                    layer.droptop.intensity.state_dict()[name], value, rtol=0, atol=0, equal_nan=True
                )
            assert torch.equal(layer.debias.generator.get_state(), learner.random["debias"].get_state())
    assert sizes == [8, 16, 20, 20]


def test_a_probe_larger_than_the_memory_takes_all_of_it_and_draws_alike():
    learner = feed(toy_learner(memory=20, period=1000, probe=10), toy_batches(1))  # which holds 8
    layer = droptop.attach(copy.deepcopy(learner.model), "maxpool", "layer4", CLASSES, **QUICK | {"probe": 10})
    layer.debias.generator.set_state(learner.random["debias"].get_state())
    rows = learner.memory.read(torch.arange(8))
    learner.probe()
    layer.probe(learner.normalise(rows["x"]), rows["y"])
    torch.testing.assert_close(layer.droptop.intensity.loss, learner.debias.droptop.intensity.loss, equal_nan=True)
    assert torch.equal(layer.debias.generator.get_state(), learner.random["debias"].get_state())


def test_adjusting_leaves_every_module_in_its_mode():
    model, layer = attached(period=1)
    model.bn1.eval()
    modes = [module.training for module in model.modules()]
    layer.adjust(X, Y)
    with layer.labels(Y):
        model(X)
    assert [module.training for module in model.modules()] == modes
    assert len(set(modes)) == 2


def test_kappa_falls_where_less_dropping_is_better():
    """A class whose loss falls only in the periods of less dropping ends up with less of it."""
    _, layer = attached(period=1, history=3, kappa_0=4.0, classify=lambda x: answers[-1])
    answers = []
    for step in range(13):
        level = len(answers) * 0.5 + 0.01 * (step % 3)
        answers.append(F.one_hot(Y, CLASSES) * (level - 0.4 if step % 2 else level))
        layer.adjust(X, Y)
    assert (layer.kappa < 4.0).all()


def test_a_probe_takes_as_many_samples_as_asked_and_an_empty_memory_none():
    model, layer = attached(period=1, probe=3, per="common", classify=lambda x: seen.append(len(x)) or model(x))
    seen = []
    layer.adjust(X, Y)
    layer.adjust(X[:0], Y[:0])
    assert seen == [3]
    assert layer.droptop.intensity.loss.isnan().all()


def test_a_restored_state_goes_on_to_the_same_bits():
    def steps(model, layer, count):
        for _ in range(count):
            with layer.labels(Y):
                model(X)
            layer.adjust(X, Y)
        return layer

    options = {"period": 1, "history": 2, "significance": 0.4, "gamma": 20.0}
    model, layer = attached(**options)
    kept = copy.deepcopy((steps(model, layer, 3).state_dict(), model.state_dict()))
    steps(model, layer, 4)
    again, other = attached(seed=5, **options)
    other.load_state_dict(kept[0])
    again.load_state_dict(kept[1])
    steps(again, other, 4)
    for name, value in layer.state_dict().items():
        torch.testing.assert_close(other.state_dict()[name], value, rtol=0, atol=0, equal_nan=True)
    with pytest.raises(BadRequest, match="state is of another layer"):
        attached(classes=7)[1].load_state_dict(kept[0])


def test_a_generator_of_another_device_waits_for_the_model():
    _, layer = attached()
    state = layer.state_dict()
    layer.load_state_dict(state | {"generator": torch.zeros(16, dtype=torch.uint8)})
    assert len(layer.waiting) == 16
    layer.load_state_dict(state)
    assert layer.waiting is None
