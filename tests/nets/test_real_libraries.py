"""Nets of timm and torchvision themselves: run wherever these packages are, as the stand-in of timm is everywhere.

Small nets and images; nothing is fetched.
"""

import importlib.metadata
import json

import pytest
import torch

import droptop
from droptop import BadRequest, Spec, make_learner
from droptop.learner_attention import attention_of
from droptop.runs.export import export

from toys import differences, feed, toy_batches

SPEC = Spec((3, 32, 32), tuple("abcd"), mean=0.5, std=0.25)
SMALL = {"memory": 20, "memory_batch": 6, "lr": 0.01}
NETS = {
    "timm:resnet10t": ("maxpool", "layer4"),
    "timm:convnext_atto": ("stem", "stages.3"),
    "timm:efficientnet_lite0": ("bn1", "blocks.6"),
    "timm:regnetx_002": ("stem", "s4"),
    "timm:vit_tiny_patch16_224": ("patch_embed", "blocks.11"),
    "timm:swin_tiny_patch4_window7_224": ("patch_embed", "layers.3"),
    "torchvision:resnet18": ("maxpool", "layer4"),
    "torchvision:convnext_tiny": ("features.0", "features.7"),
    "torchvision:efficientnet_b0": ("features.0", "features.8"),
    "torchvision:regnet_x_400mf": ("stem", "trunk_output.block4"),
    "torchvision:swin_t": ("features.0", "features.7"),
}
pytestmark = pytest.mark.filterwarnings("ignore")  # of these packages, and that a last map is 1 x 1


@pytest.fixture(autouse=True)
def packages():
    """Skip where a package is missing, or does not go with this build of torch (torchvision then raises)."""
    for package in ("torchvision", "timm"):
        pytest.importorskip(package, exc_type=Exception)


def learner_of(net, method="er", spec=SPEC, device="cpu", **options):
    return make_learner(method, spec, "droptop", net=net, device=device, **SMALL | options)


def batches(count):
    return [(x.repeat(1, 1, 2, 2), y, task) for x, y, task in toy_batches(count)]


@pytest.mark.parametrize("net", NETS)
def test_every_family_learns_by_its_own_maps_and_draws_nothing(net):
    learner = learner_of(net)
    assert learner.model.names == NETS[net]
    before = torch.get_rng_state()
    feed(learner, batches(2))
    assert torch.equal(before, torch.get_rng_state())
    assert (learner.trace.mask == 0).any()
    assert attention_of(learner, batches(1)[0][0]).isfinite().all()


@pytest.mark.parametrize("method", ["derpp", "mir", "gss", "aser", "scr", "pcr", "mkd"])
def test_replay_methods_learn(method):
    learner = feed(learner_of("timm:resnet10t", method), batches(2))
    assert learner.predict(batches(1)[0][0])[:, learner.seen].isfinite().all()


@pytest.mark.parametrize("net", ["timm:resnet10t", "timm:vit_tiny_patch16_224", "torchvision:convnext_tiny"])
def test_frozen_features_are_those_that_the_classifier_sees(net):
    learner = feed(learner_of(net, "ncm", weights="random", input_size=64), batches(2))
    model, x = learner.model.eval(), learner.normalise(batches(1)[0][0])
    with torch.no_grad():
        features = model.features(x).pooled
        assert torch.allclose(features, model.net(x), atol=1e-5)
        assert torch.allclose(model.head(model.features(x)), model(x), atol=1e-5)


def test_prompts_are_given_to_a_plain_vit_and_to_no_other():
    options = {"weights": "random", "input_size": 64}
    feed(learner_of("timm:vit_tiny_patch16_224", "l2p", **options), batches(1))
    with pytest.raises(BadRequest, match="cannot be given prompts"):
        learner_of("timm:deit_tiny_distilled_patch16_224", "l2p", **options)


def test_what_weights_were_trained_on_is_known():
    for net in ("timm:resnet10t", "torchvision:resnet18"):
        model = learner_of(net, weights="random", input_size=None).model
        assert model.pixels.mean == pytest.approx((0.485, 0.456, 0.406))
        assert model.size[0] >= 160


def test_a_norm_with_an_activation_has_no_gradients_of_groups():
    with pytest.raises(BadRequest, match="BatchNormAct2d"):
        learner_of("timm:repvgg_a0", "gss")


@pytest.mark.parametrize("net", ["timm:resnet10t", "timm:swin_tiny_patch4_window7_224"])
def test_bf16_and_exactness(net):
    feed(learner_of(net, precision="bf16"), batches(2))
    whole, half, other = (learner_of(net) for _ in range(3))
    given = batches(4)
    feed(whole, given)
    other.load_state_dict({name: value.clone() for name, value in feed(half, given[:2]).state_dict().items()})
    assert differences(whole.state_dict(), feed(other, given[2:]).state_dict()) == []


def test_a_net_is_exported(tmp_path):
    learner = feed(learner_of("timm:resnet10t"), batches(2))
    for kind in ("onnx", "pt2", "safetensors"):
        assert export(learner, tmp_path / f"net.{kind}") < 1e-4


def test_a_run_notes_the_version_and_goes_on(tmp_path):
    options = {"limit": 32, "split": "0,1/2,3", "maps": 0, "memory": 40}
    droptop.run("fashion-sticker", net="timm:resnet10t", out=tmp_path / "out", seeds=1, **options)
    noted = json.loads((tmp_path / "out/environment.json").read_text())
    assert noted["versions"]["timm"] == importlib.metadata.version("timm")
    assert droptop.resume(tmp_path / "out", 2)["seeds"] == [0, 1]
    assert type(droptop.load_learner(tmp_path / "out").model.net).__name__ == "ResNet"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("net", ["timm:resnet10t", "timm:convnext_atto", "timm:vit_tiny_patch16_224"])
def test_steps_are_captured_on_a_gpu(net, tmp_path):
    options = {"limit": 64, "split": "0,1/2,3", "maps": 0, "memory": 40, "seeds": 1, "device": "cuda", "lr": 0.01}
    results = []
    for graphs in (True, False):
        out = tmp_path / str(graphs)
        droptop.run("fashion-sticker", net=net, out=out, graphs=graphs, deterministic=True, **options)
        results.append((out / "seed-0/metrics.jsonl").read_text())
    assert results[0] == results[1]
