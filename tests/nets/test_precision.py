from types import SimpleNamespace

import pytest
import torch

from droptop.nets import Backbone, NetConfig, allow_tf32, build, compute_in, evaluating, last_map
from droptop.nets.precision import is_replaced, restore
from droptop.training.workers import prepare

SHAPE = (3, 16, 16)


def net(precision):
    model = build(NetConfig(width=8, stem="3x3"), 3, 4, seed=0)
    compute_in(model, SHAPE, precision)
    return model


def logits_and_gradients(model):
    x = torch.randn(6, *SHAPE, generator=torch.Generator().manual_seed(0))
    first = model.stem(x)
    last_map(model, first)  # without gradient, as DropTop's attention pass: it must not spoil the one that follows
    logits = model.head(model.trunk(first))
    logits.square().sum().backward()
    return logits.detach(), {name: weight.grad for name, weight in model.named_parameters()}


def test_bf16_is_autocast_with_its_weights_cast_together():
    """Against torch's own autocast, which casts every weight by itself."""
    plain, low = net("fp32"), net("bf16")
    for part in ("stem", "trunk", "head"):
        setattr(plain, part, torch.autocast("cpu", torch.bfloat16, cache_enabled=False)(getattr(plain, part)))
    expected, found = logits_and_gradients(plain), logits_and_gradients(low)
    assert found[0].dtype == torch.float32
    assert torch.equal(expected[0].float(), found[0])
    for name, gradient in found[1].items():
        assert gradient.dtype == torch.float32
        assert torch.equal(gradient, expected[1][name]), name


def test_maps_keep_bf16_and_features_are_float32():
    model = net("bf16")
    with evaluating(model):
        first = model.stem(torch.zeros(2, *SHAPE))
        features = model.trunk(first)
    assert first.dtype == features.map.dtype == torch.bfloat16
    assert features.pooled.dtype == torch.float32


def test_a_net_that_is_restored_is_exact():
    plain, low = net("fp32"), net("bf16")
    assert (is_replaced(plain), is_replaced(low)) == (False, True)
    restore(low)
    assert not is_replaced(low)
    assert torch.equal(logits_and_gradients(low)[0], logits_and_gradients(plain)[0])


def test_weights_stay_what_they_were():
    model = net("bf16")
    assert all(isinstance(weight, torch.nn.Parameter) for weight in model.parameters())
    before = {name: value.clone() for name, value in model.state_dict().items() if "running" not in name}
    model(torch.zeros(2, *SHAPE))
    assert all(torch.equal(before[name], model.state_dict()[name]) for name in before)
    with pytest.raises(RuntimeError):
        model(torch.zeros(2, 5, 16, 16))  # a failure in between leaves them, too
    assert all(weight.dtype == torch.float32 for weight in model.parameters())


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_on_a_cpu_the_others_are_exact(precision):
    assert torch.equal(
        logits_and_gradients(net(precision))[0],
        logits_and_gradients(build(NetConfig(width=8, stem="3x3"), 3, 4, seed=0))[0],
    )


@pytest.fixture
def switches():
    """Torch's switches for TF32, as a user has set them; all that a test changes is undone."""
    deterministic, cudnn = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn
    with cudnn.flags(enabled=cudnn.enabled, benchmark=cudnn.benchmark, deterministic=cudnn.deterministic):
        before = torch.backends.cuda.matmul.allow_tf32, cudnn.allow_tf32
        yield lambda: (torch.backends.cuda.matmul.allow_tf32, cudnn.allow_tf32)
        torch.backends.cuda.matmul.allow_tf32, cudnn.allow_tf32 = before
    torch.use_deterministic_algorithms(deterministic)


class OnGPU(Backbone):
    """A backbone whose weights say that they lie on a GPU."""

    def parameters(self, recurse=True):
        return iter([SimpleNamespace(device=torch.device("cuda"))])


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
@pytest.mark.parametrize("before", [(False, True), (True, False)])
def test_a_net_on_a_gpu_leaves_the_process_as_its_user_set_it(precision, before, switches):
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
    compute_in(OnGPU(), SHAPE, precision)
    assert switches() == before


def test_the_process_of_a_command_rounds_as_its_precision_says(switches, monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    for precision, rounds in (("fp32", False), ("tf32", True), ("fp32", False), ("bf16", True)):
        prepare("cuda", deterministic=False, precision=precision)
        assert switches() == (rounds, rounds)
    for device, expected in (("cpu", True), ("cuda", False)):
        allow_tf32(device, "fp32")
        assert switches() == (expected, expected)
