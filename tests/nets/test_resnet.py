import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from droptop import BadRequest
from droptop.nets import Adapted, NetConfig, build, evaluating, last_map, least_rows, load_weights, untracked
from droptop.nets.resnet import Downsample


@pytest.mark.parametrize(
    ("stem", "first", "last"), [("3x3", 32, 4), ("3x3/2", 16, 2), ("7x7/2", 16, 2), ("7x7/2-pool", 8, 1)]
)
def test_map_sizes(stem, first, last):
    model = build(NetConfig(width=4, stem=stem), 3, 10, seed=0)
    x = torch.rand(2, 3, 32, 32)
    assert model.stem(x).shape == (2, 4, first, first)
    features = model.trunk(model.stem(x))
    assert features.map.shape == (2, 32, last, last)
    assert features.pooled.shape == (2, 32)
    assert model(x).shape == (2, 10)
    assert (model.stem(x) >= 0).all()  # the first map is taken after norm and activation
    assert (features.map >= 0).all()


NARROW = """
import torch
from droptop.nets import NetConfig, build

torch.set_num_threads(1)
for width, size in ((4, 64), (12, 96)):
    net = build(NetConfig(width=width), 3, 10, seed=0).to(memory_format=torch.channels_last)
    for _ in range(4):
        net(torch.rand(4, 3, size, size).contiguous(memory_format=torch.channels_last)).sum().backward()
"""


def test_a_narrow_net_lives_through_large_images():
    """Where oneDNN skips the pixels itself, the process dies of a corrupted heap."""
    assert subprocess.run([sys.executable, "-c", NARROW], capture_output=True, text=True).returncode == 0


@pytest.mark.parametrize(("channels", "size"), [(3, 8), (7, 33), (8, 16), (12, 31), (12, 32), (16, 64)])
def test_a_downsample_is_a_convolution_that_skips_pixels(channels, size):
    torch.manual_seed(0)
    layer = Downsample(channels, 2 * channels, 1, 2, bias=False).to(memory_format=torch.channels_last)
    x = torch.rand(2, channels, size, size).contiguous(memory_format=torch.channels_last).requires_grad_()
    exact, weight = x.detach().double().requires_grad_(), layer.weight.detach().double().requires_grad_()
    by_hand = torch.einsum("nchw,oc->nohw", exact[:, :, ::2, ::2], weight[:, :, 0, 0])
    ours, direction = layer(x), torch.rand(by_hand.shape)
    torch.testing.assert_close(ours.double(), by_hand, rtol=1e-5, atol=1e-5)
    (ours * direction).sum().backward()
    (by_hand * direction).sum().backward()
    torch.testing.assert_close(x.grad.double(), exact.grad, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(layer.weight.grad.double(), weight.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("stem", ["3x3", "7x7/2-pool"])
@pytest.mark.parametrize("size", [8, 32, 64])
def test_the_least_rows_of_a_training_pass_are_those_that_torch_takes(stem, size):
    model = build(NetConfig(width=4, stem=stem), 3, 10, seed=0).train()
    before = [buffer.clone() for buffer in model.buffers()]
    rows = least_rows(model, (3, size, size))
    assert all(map(torch.equal, before, model.buffers()))
    assert not any(module._forward_pre_hooks or not module.training for module in model.modules())
    if rows == 2:
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            model(torch.rand(1, 3, size, size))
    assert model(torch.rand(rows, 3, size, size)).isfinite().all()


def test_batchnorm_after_the_pooling_counts_too():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.BatchNorm1d(4))
    assert least_rows(Adapted(net, "0", "1"), (3, 8, 8)) == 2
    assert least_rows(Adapted(net[:4], "0", "1"), (3, 8, 8)) == 1


def test_the_default_net_is_resnet_18():
    parameters = sum(p.numel() for p in build(NetConfig(width=64, stem="7x7/2-pool"), 3, 1000, seed=0).parameters())
    assert parameters == 11_689_512  # torchvision's resnet18


def test_the_seed_decides_the_weights_and_nothing_else_does():
    a = build(NetConfig(width=4), 3, 10, seed=1)
    torch.rand(3)
    b, c = build(NetConfig(width=4), 3, 10, seed=1), build(NetConfig(width=4), 3, 10, seed=2)
    assert torch.equal(a.fc.weight, b.fc.weight)
    assert not torch.equal(a.fc.weight, c.fc.weight)


def test_evaluating_and_untracked_restore_the_modes():
    model = build(NetConfig(width=4), 3, 10, seed=0).train()
    x = torch.rand(8, 3, 32, 32)
    before = [buffer.clone() for buffer in model.buffers()]
    with untracked(model):
        trained = model(x)
    first = model.stem(x)
    for buffer, old in zip(model.buffers(), before):
        buffer.copy_(old)
    assert not last_map(model, first).requires_grad
    assert all(torch.equal(a, b) for a, b in zip(before, model.buffers()))
    with evaluating(model):
        evaluated, scored = model(x), model.trunk(first).map
    assert torch.equal(last_map(model, first, norm="running"), scored)
    assert not torch.allclose(last_map(model, first, norm="batch"), scored)
    assert model.training
    assert all(torch.equal(a, b) for a, b in zip(before, model.buffers()))
    assert not torch.allclose(trained, evaluated)  # batch statistics against running ones
    assert torch.equal(trained, model(x))


def test_weights_from_a_file(tmp_path):
    source, target = build(NetConfig(width=4), 3, 10, seed=1), build(NetConfig(width=4), 3, 10, seed=2)
    save_file(source.state_dict(), tmp_path / "w.safetensors")
    load_weights(target, tmp_path / "w.safetensors")
    assert torch.equal(source.fc.weight, target.fc.weight)
    with pytest.raises(BadRequest, match=r"conv1\.weight"):
        load_weights(build(NetConfig(width=4, stem="7x7/2"), 3, 10, seed=0), tmp_path / "w.safetensors")
    (tmp_path / "bad").write_bytes(b"no tensors")
    with pytest.raises(BadRequest, match="bad"):
        load_weights(target, tmp_path / "bad")
