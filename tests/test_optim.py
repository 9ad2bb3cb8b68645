"""Our optimisers against torch's own, to the bit."""

import copy
import subprocess
import sys

import pytest
import torch
from torch import nn

from droptop.optim import SGD, Adam
from droptop.system import devices

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, NO_GPU])]
KINDS = {
    "sgd": (lambda weights: SGD(weights, 0.1), lambda weights: torch.optim.SGD(weights, 0.1, fused=True)),
    "momentum, decay": (
        lambda weights: SGD(weights, 0.1, 0.9, 0.01),
        lambda weights: torch.optim.SGD(weights, 0.1, 0.9, weight_decay=0.01, fused=True),
    ),
    "adam": (
        lambda weights: Adam(weights, 0.05, (0.8, 0.99), 0.01),
        lambda weights: torch.optim.Adam(weights, 0.05, (0.8, 0.99), weight_decay=0.01, fused=True),
    ),
}


def with_gradients(model, seed):
    """One of the model's weights has none."""
    torch.manual_seed(seed)
    for number, weight in enumerate(model.parameters()):
        weight.grad = None if number == 1 else torch.randn_like(weight)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_steps_as_torch(kind, device):
    torch.manual_seed(0)
    ours = nn.Sequential(nn.Conv2d(3, 7, 3), nn.Linear(70, 33), nn.Linear(33, 5).double()).to(device)
    theirs = copy.deepcopy(ours)
    own, oracle = (make(list(model.parameters())) for make, model in zip(KINDS[kind], (ours, theirs)))
    for step in range(6):
        for model, optimizer in ((ours, own), (theirs, oracle)):
            with_gradients(model, step)
            # torch begins momentum with the first gradient, we with zeros: the same, unless the first step is skipped
            optimizer.found_inf = torch.tensor(float(step == 3), device=device)
            optimizer.param_groups[0]["lr"] = 0.1 / (step + 1)
            before = copy.deepcopy(model.state_dict())
            optimizer.step()
        moved = [not torch.equal(value, before[name]) for name, value in theirs.state_dict().items()]
        assert moved == [step != 3 and number != 1 for number in range(len(moved))]
        for mine, other in zip(ours.parameters(), theirs.parameters()):
            assert torch.equal(mine, other)
            for name, value in oracle.state[other].items():
                assert value is None or torch.equal(own.state[mine][name], value)
    own.zero_grad()
    assert all(weight.grad is None for weight in ours.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_steps_where_kernels_cannot_skip_one(kind, monkeypatch):
    """As on Apple's GPUs, where torch refuses `found_inf`: what the step has changed is put back."""
    monkeypatch.setattr(devices, "LIMITED", {"cpu"})
    for optimizer in (SGD, Adam):
        advance = optimizer.advance

        def asked(self, gradients, advance=advance):
            assert self.found_inf is None
            advance(self, gradients)

        monkeypatch.setattr(optimizer, "advance", asked)
    test_the_same_steps_as_torch(kind, "cpu")


def test_learning_does_not_import_the_compiler():
    code = (
        "import sys, droptop\n"
        "stream = droptop.make_stream('fashion', seed=0, limit=32)\n"
        "learner = droptop.make_learner('er', stream, debias='droptop', seed=0, width=4)\n"
        "for x, y, task, _ in stream:\n"
        "    learner.observe(x, y, task)\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
