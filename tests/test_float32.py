"""A device without float64, as Apple's GPUs are: no learner makes a tensor of it. Shown on a CPU, taken for one."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from droptop import Samples, Stream, StreamConfig, attach
from droptop.debias.intensity import Intensity, IntensityConfig
from droptop.system import devices
from droptop.training.evaluation import evaluate
from droptop.training.stepping import Steps
from droptop.types import Position

from contracts import over_variants
from models import ResNet
from toys import QUICK, SPEC, feed, toy_batches, toy_learner


class Wide(TorchDispatchMode):
    """Note every operation that gives a tensor of float64."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given = function(*args, **(kwargs or {}))
        if any(isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float64 for leaf in tree_leaves(given)):
            self.found.append(str(function))
        return given


@pytest.fixture(autouse=True)
def limited(monkeypatch):
    monkeypatch.setattr(devices, "LIMITED", {"mps", "cpu"})


def narrow(state):
    return [name for name, value in state.items() if value.dtype == torch.float64]


@over_variants
def test_no_learner_makes_a_float64_tensor(method, options):
    """In steps, probes and predictions; what it holds from its beginning is made narrow before it is moved."""
    learner = toy_learner(method, **options)
    assert narrow(learner.state_dict()) == []
    with Wide() as wide:
        feed(learner, toy_batches(4))
        learner.predict(toy_batches(1)[0][0])
    assert wide.found == []
    assert narrow(learner.state_dict()) == []


def test_the_log_and_the_evaluation_of_a_run_make_none():
    x, y = (torch.cat(parts) for parts in zip(*((x, y) for x, y, _ in toy_batches(4))))
    samples = Samples(x, y)
    stream = Stream("toy", SPEC, samples, {"clean": samples}, StreamConfig(tasks=2, batch=8), seed=0)
    learner = toy_learner(augment="none")
    with Wide() as wide:
        steps = Steps(learner, stream, Position(), 4)
        for task in range(2):
            for batch in range(stream.steps(task)):
                steps.advance(Position(task, batch))
        records = steps.read()
        evaluate(learner, samples)
    assert wide.found == []
    assert len(records) == len(stream)
    assert all(record.finite and record.kappa for record in records)


def test_a_layer_follows_its_model_there_and_back(monkeypatch):
    """Float64 becomes float32 as the model is moved, and the layer goes on in float32 wherever it is moved then."""
    monkeypatch.setattr(devices, "LIMITED", {"mps"})
    model = ResNet(4)
    layer = attach(model, "maxpool", "layer4", classes=4, **QUICK)
    x, y, _ = toy_batches(1)[0]
    for limited in ({"mps", "cpu"}, {"mps"}):
        monkeypatch.setattr(devices, "LIMITED", limited)
        layer.debias.move(layer.debias.generator)
        with layer.labels(y):
            model(x.float() / 255)
        for _ in range(4):
            layer.probe(x.float() / 255, y)
        assert narrow(layer.debias.state_dict()) == []


def test_intensities_are_decided_alike_in_float32():
    """By the same losses; a whole run differs more, since reservoir sampling draws other numbers."""
    config, random = IntensityConfig(history=3, significance=0.3), torch.Generator().manual_seed(0)
    wide, short = (Intensity(config, 5, 5.0, 10.0) for _ in range(2))
    devices.moved(short, "cpu")
    before = wide.kappa.clone()
    for _ in range(40):
        losses = torch.rand(5, generator=random, dtype=torch.float64)
        wide.record(losses)
        short.record(losses.float())
    assert short.kappa.dtype == torch.float32
    assert not torch.equal(wide.kappa, before)
    torch.testing.assert_close(short.kappa.double(), wide.kappa)


def test_states_go_from_one_kind_of_device_to_the_other():
    state = feed(toy_learner(), toy_batches(4)).state_dict()
    devices.LIMITED.clear()
    learner = toy_learner(seed=1)
    learner.load_state_dict(state)
    kept = learner.state_dict()
    assert kept["debias.droptop.intensity.kappa"].dtype == torch.float64
    assert all(torch.equal(kept[name].double(), value.double()) for name, value in state.items())


def test_what_is_drawn_on_the_host_follows_the_generator():
    from droptop.debias.mixstyle import standard_gamma
    from droptop.rng import generator

    shape = torch.full((2, 4000), 0.1)
    first, again, other = (standard_gamma(shape, generator(seed, "toy")) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.mean().item() == pytest.approx(0.1, rel=0.2)  # that of the gamma distribution is its shape
