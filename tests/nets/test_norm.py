"""Our kernels against torch's BatchNorm in float64; without a GPU, in Triton's interpreter where that is installed."""

import copy
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from droptop.nets import NetConfig, build
from droptop.nets.gradients import patches
from droptop.nets.kernel_choice import own_kernels
from droptop.nets.norm import Norm

SHAPES = [(3, 5, 4, 4), (2, 64, 9, 7), (5, 80, 6, 6), (64, 8, 1, 1), (64, 64, 32, 32), (64, 512, 4, 4)]
WITH = [(False, False), (True, False), (True, True)]  # ReLU, an addend
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 1e-2}


def on_a_gpu(test):
    return pytest.mark.gpu(pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")(test))


def given(shape, dtype, device, seed=0, offset=3.0):
    """A layer with statistics of its own, what enters it, what is added, and a gradient."""
    generator = torch.Generator().manual_seed(seed)
    layer = Norm(shape[1])
    with torch.no_grad():
        for tensor in (layer.weight, layer.bias, layer.running_mean, layer.running_var):
            tensor.copy_(torch.rand(shape[1], generator=generator) + 0.5)
    x, add, gradient = (
        torch.randn(shape, generator=generator).to(dtype).to(device).contiguous(memory_format=torch.channels_last)
        for _ in range(3)
    )
    return layer.to(device), x * 2 + offset, add, gradient


def reference(layer, x, add, gradient, relu):
    """What comes out, the layer's buffers afterwards, and the gradients, all in float64 by torch."""
    own = nn.BatchNorm2d(x.shape[1], dtype=torch.float64, device=x.device)
    own.load_state_dict(layer.state_dict(), strict=False)
    own.train(layer.training)
    x, add = x.double().requires_grad_(), None if add is None else add.double().requires_grad_()
    y = own(x)
    y = y if add is None else y + add
    y = F.relu(y) if relu else y
    inputs = [x, own.weight, own.bias] + ([] if add is None else [add])
    return [y, own.running_mean, own.running_var, *torch.autograd.grad(y, inputs, gradient.double())]


def ours(layer, x, add, gradient, relu):
    x, add = x.requires_grad_(), None if add is None else add.requires_grad_()
    y = layer.fused(x, add, relu)
    inputs = [x, layer.weight, layer.bias] + ([] if add is None else [add])
    return [y, layer.running_mean, layer.running_var, *torch.autograd.grad(y, inputs, gradient)]


def check(shape, dtype, training, relu, added, device):
    layer, x, add, gradient = given(shape, dtype, device)
    layer.train(training)
    add = add if added else None
    if relu:  # where it is 0 but for rounding, which side it is on is a matter of taste
        level = reference(copy.deepcopy(layer), x.detach(), add, gradient, False)[0]
        gradient = gradient * (level.abs() > 1e-3)
    expected = reference(copy.deepcopy(layer), x.detach(), add, gradient, relu)
    found = ours(layer, x.detach(), add, gradient, relu)
    for one, other in zip(found, expected, strict=True):
        scale = other.abs().max().clamp(min=1e-6)
        assert ((one.double() - other).abs().max() / scale).item() < TOLERANCE[dtype]


@on_a_gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("relu", "added"), WITH)
def test_kernels_are_batch_norm(shape, dtype, training, relu, added):
    check(shape, dtype, training, relu, added, "cuda")


@pytest.mark.skipif(find_spec("triton") is None or torch.cuda.is_available(), reason="needs Triton and no CUDA device")
def test_kernels_are_batch_norm_when_interpreted():
    code = (
        "import torch, test_norm\n"
        "for shape in test_norm.SHAPES[:3]:\n"
        "    for relu, added in test_norm.WITH:\n"
        "        for training in (True, False):\n"
        "            test_norm.check(shape, torch.float32, training, relu, added, 'cpu')\n"
    )
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, env=environment, check=True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine on which no kernel can run")
def test_without_triton_torchs_kernels_are_used():
    own_kernels.cache_clear()  # it says so once
    with pytest.warns(UserWarning, match="Triton does not work here"):
        assert own_kernels() is None
    assert own_kernels() is None


def test_a_backbone_switches_all_of_its_layers():
    model = build(NetConfig(width=4), 3, 4, seed=0)
    layers = [module for module in model.modules() if isinstance(module, Norm)]
    assert len(layers) == 20
    assert not any(layer.own_kernels for layer in layers)
    for wanted in (True, False):
        model.use_own_kernels(wanted)
        assert model.own_kernels == wanted
        assert all(layer.own_kernels == wanted for layer in layers)
    assert not Norm(3).own_kernels  # which others do not share


def test_on_a_cpu_the_layer_is_torchs():
    layer, x, add, _ = given((4, 6, 5, 5), torch.float32, "cpu")
    own = nn.BatchNorm2d(6)
    own.load_state_dict(layer.state_dict(), strict=False)
    assert torch.equal(layer.relu(x, add), F.relu(own(x) + add))
    assert torch.equal(layer(x), own(x))
    assert torch.equal(layer.running_var, own.running_var)
    assert layer.state_dict().keys() == own.state_dict().keys() - {"num_batches_tracked"}


@pytest.mark.parametrize("part", ["stem", "trunk"])
def test_the_layer_compiles_without_a_graph_break(part):
    model = build(NetConfig(width=4), 3, 4, seed=0)
    model.use_own_kernels(True)
    x = torch.zeros(2, 3, 16, 16)
    told = torch._dynamo.explain(getattr(type(model), part))(model, x if part == "stem" else model.stem(x).detach())
    torch._dynamo.reset()
    assert told.graph_break_count == 0, told.break_reasons


@on_a_gpu
def test_large_offsets_lose_nothing():
    layer, x, _, gradient = given((64, 16, 8, 8), torch.float32, "cuda", offset=3000.0)
    expected = reference(copy.deepcopy(layer), x, None, gradient, False)[0]
    found = ours(layer, x, None, gradient, False)[0]
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=5e-3)


@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream")  # which only costs time
@on_a_gpu
def test_kernels_on_many_streams_give_the_same_bits():
    """Ten layers at once on streams of their own, twenty times: counters and parts of sums are not mixed up."""
    made = [given((64, 64, 16, 16), torch.bfloat16, "cuda", seed) for seed in range(10)]
    alone = [ours(copy.deepcopy(layer), x.detach(), add, gradient, True) for layer, x, add, gradient in made]
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in made]
    for _ in range(20):
        beside = []
        for stream, (layer, x, add, gradient) in zip(streams, made):
            with torch.cuda.stream(stream):
                beside.append(ours(copy.deepcopy(layer), x.detach(), add, gradient, True))
        torch.cuda.synchronize()
        for one, other in zip(alone, beside):
            assert all(torch.equal(a, b) for a, b in zip(one, other))


@on_a_gpu
def test_running_statistics_stay_where_they_are_not_tracked():
    layer, x, _, _ = given((8, 6, 5, 5), torch.float32, "cuda")
    before = layer.running_mean.clone()
    layer.own_kernels, layer.track_running_stats = True, False
    layer(x)
    assert torch.equal(layer.running_mean, before)
    layer.track_running_stats = True
    layer(x)
    assert not torch.equal(layer.running_mean, before)


@on_a_gpu
def test_hooks_see_the_layers_own_output():
    layer, x, add, _ = given((8, 6, 5, 5), torch.float32, "cuda")
    seen = []
    layer.register_forward_hook(lambda layer, entered, left: seen.append(left))
    layer.own_kernels = True
    y = layer.relu(x, add)
    assert torch.equal(F.relu(seen[0] + add), y)
    assert (seen[0] < 0).any()


@on_a_gpu
def test_nan_and_infinity_come_through():
    layer, x, add, _ = given((8, 6, 5, 5), torch.float32, "cuda")
    add[0, 0, 0, 0] = torch.nan
    assert layer.fused(x, add, relu=True)[0, 0, 0, 0].isnan()
    x[0, 1, 0, 0] = torch.inf
    assert layer.fused(x, add, relu=True)[:, 1].isnan().any()


@on_a_gpu
@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(3, 4, 3, 1, 1),
        nn.Conv2d(64, 4, 3, 2, 1),
        nn.Conv2d(5, 4, 7, 2, 3),
        nn.Conv2d(70, 4, 1, 2),
        nn.Conv2d(6, 4, (3, 1), (1, 2), (0, 2)),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_own_patches_are_those_of_unfold(layer, dtype):
    x = torch.randn(3, layer.in_channels, 9, 11, dtype=dtype)
    assert own_kernels() is not None
    found = patches(x.cuda(), layer, own_kernels=True)
    assert torch.equal(found.cpu(), patches(x, layer))


@on_a_gpu
def test_own_kernels_are_used_only_when_asked_for():
    layer, x, add, _ = given((8, 6, 5, 5), torch.float32, "cuda")
    assert not layer.fuses(x)
    ours = copy.deepcopy(layer)
    ours.own_kernels = True
    assert ours.fuses(x)
    assert not ours.fuses(x.contiguous())
    assert not ours.fuses(x.double())
    torch.testing.assert_close(ours.relu(x, add), layer.relu(x, add))
