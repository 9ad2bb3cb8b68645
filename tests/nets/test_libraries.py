"""Nets of timm by name, here of a stand-in for it with small nets of each family's names."""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import droptop
from droptop import BadRequest, DroptopError, Spec, make_learner
from droptop.learner_attention import attention_of
from droptop.methods import METHODS
from droptop.nets import LibraryNet
from droptop.nets.gradients import check_model
from droptop.rng import seeded
from droptop.runs.export import export

from toys import SPEC, differences, feed, toy_batches

STAND_IN = str(Path(__file__).parent.parent / "stand_ins")
FAMILIES = {
    "resnet9": ("maxpool", "layer4"),
    "convnext_bit": ("stem", "stages.1"),
    "efficientnet_bit": ("bn1", "blocks.1"),
    "regnet_bit": ("stem", "s4"),
    "swin_bit": ("patch_embed", "layers.1"),
    "vit_bit_patch4_24": ("patch_embed", "blocks.4"),
}
SMALL = {"memory": 20, "memory_batch": 6, "lr": 0.01}
ON_FROZEN = ("ncm", "slda", "ranpac")


@pytest.fixture(autouse=True)
def timm(monkeypatch):
    """Put the stand-in in timm's place, here and in processes that are started."""
    monkeypatch.syspath_prepend(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", STAND_IN, prepend=":")
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    yield
    sys.modules.pop("timm", None)


def learner_of(net, method="er", debias="droptop", spec=SPEC, seed=0, **options):
    return make_learner(method, spec, debias, seed, net=f"timm:{net}", **SMALL | options)


@pytest.mark.parametrize("net", FAMILIES)
def test_every_family_learns_by_its_own_maps_and_draws_nothing_of_its_own(net):
    learner = learner_of(net)
    assert learner.model.names == FAMILIES[net]
    before = torch.get_rng_state()
    feed(learner, toy_batches(3))
    assert torch.equal(before, torch.get_rng_state())
    assert (learner.trace.mask == 0).any()
    assert attention_of(learner, toy_batches(1)[0][0]).dim() == 3


def test_weights_are_those_that_the_seed_draws_for_the_classes_of_the_stream():
    first, again, other = (learner_of("resnet9", seed=seed).model.net for seed in (0, 0, 1))
    assert torch.equal(first.conv1.weight, again.conv1.weight)
    assert not torch.equal(first.conv1.weight, other.conv1.weight)
    with seeded(0, "init"):
        expected = sys.modules["timm"].create_model("resnet9", num_classes=4)
    assert torch.equal(first.fc.weight, expected.fc.weight)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_with_every_kind_of_debiaser(method):
    frozen = METHODS[method].net_type.__name__ == "ViTConfig"
    net = "vit_bit_patch4_24" if frozen and method not in ON_FROZEN else "resnet9"
    options = {"weights": "random"} if frozen else {}
    options |= {"projections": 20} if method == "ranpac" else {}
    for debias in ("none", "droptop", "robust"):
        learner = feed(learner_of(net, method, debias, **options), toy_batches(3))
        assert learner.predict(toy_batches(1)[0][0])[:, learner.seen].isfinite().all()


def test_frozen_features_are_those_that_the_classifier_sees_and_batchnorm_stays():
    learner = learner_of("resnet9", "ncm", "none", weights="random")
    before = {name: value.clone() for name, value in learner.model.net.net.named_buffers()}
    feed(learner, toy_batches(3))
    assert all(torch.equal(value, before[name]) for name, value in learner.model.net.net.named_buffers())
    net, x = learner.model.net, learner.normalise(toy_batches(1)[0][0])
    with torch.no_grad():
        at_layer4 = nn.Sequential(net.net.conv1, net.net.bn1, net.net.relu, net.net.maxpool, net.net.layer1)
        pooled = net.net.layer4(at_layer4(net.resized(x))).mean((2, 3))
        assert torch.allclose(learner.model.eval().features(x).pooled, pooled, atol=1e-6)


def test_images_are_as_the_weights_were_trained_on_where_there_are_any(tmp_path):
    with seeded(5, "elsewhere"):
        net = importlib.import_module("timm").create_model("resnet9", num_classes=7)
    save_file(net.state_dict(), tmp_path / "weights.safetensors")
    learner = learner_of("resnet9", weights=str(tmp_path / "weights.safetensors"))
    assert learner.model.size == (24, 24)
    assert learner.mean.flatten().tolist() == pytest.approx([0.5, 0.4, 0.3])
    assert torch.equal(learner.model.net.conv1.weight, net.conv1.weight)
    assert learner.model.net.fc.weight.shape == (4, 8)  # of 7 classes in the file
    plain = learner_of("resnet9")
    assert plain.model.size == (16, 16)
    assert plain.mean.flatten().tolist() == [SPEC.mean]
    assert learner_of("resnet9", input_size=32).model.size == (32, 32)


def test_grey_images_are_three_equal_channels():
    grey, seen = Spec((1, 16, 16), tuple("abcd")), []
    learner = learner_of("resnet9", spec=grey, weights="random")
    assert learner.mean.flatten().tolist() == pytest.approx([0.4])
    learner.model.net.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    learner.observe(torch.randint(0, 256, (6, 1, 16, 16), dtype=torch.uint8), torch.tensor([0, 1, 2, 3, 0, 1]))
    assert all(x.shape[1:] == (3, 24, 24) and torch.equal(x[:, 0], x[:, 2]) for x in seen)


def test_a_net_of_no_family_is_told_its_maps():
    learner = learner_of("unheard", first="begin", last="end")
    assert learner.model.names == ("begin", "end")
    assert learner_of("resnet9", first="conv1").model.names == ("conv1", "layer4")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"net": "resnet19"}, "one of the 7 nets that timm lists, not timm:resnet19; near it are timm:resnet9"),
        ({"net": "resnet9.in1k"}, "Invalid pretrained tag"),
        ({"net": "hf-hub:somebody/net"}, "one of the 7 nets that timm lists"),
        ({"net": "unheard"}, "of no family .* by --first and --last; it has begin, end, out"),
        ({"net": "resnet9", "last": "layr4"}, "last takes .* has layer4"),
        ({"net": "resnet9", "width": 8}, "--width is for nets that droptop builds, not for timm:resnet9"),
        ({"net": "resnet9", "compile": True}, "--compile is for nets that droptop builds"),
        ({"net": "resnet9", "debias": "rsc"}, "--debias rsc takes a net that droptop builds"),
        ({"net": "resnet9", "pretrained": True}, r"does not get the weights of resnet9 \(we are not on line\)"),
        (
            {"net": "vit_bit_patch4_24", "pretrained": True, "input_size": 18},
            r"not made for images of 18 x 18 \(the patch does not divide the image\): --input-size 24 resizes them",
        ),
        ({"net": "unheard", "pretrained": True}, "timm has no weights of unheard"),
        ({"net": "resnet9", "pretrained": True, "weights": "random"}, "--pretrained takes no --weights beside it"),
        ({"net": "convnext_bit", "method": "gss"}, "gss takes a model of plain Conv2d"),
        ({"net": "resnet9", "method": "ncm"}, "frozen with this method and takes weights: --pretrained"),
        ({"net": "resnet9", "method": "l2p", "weights": "random"}, "cannot be given prompts"),
        ({"net": "vit_bit_patch4_24", "spec": Spec((3, 18, 18), tuple("abcd"))}, "--input-size 24 resizes them"),
        ({"net": "resnet9", "spec": Spec((4, 16, 16), tuple("abcd"))}, "1 or 3 channels, not 4"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(options, says):
    with pytest.raises(DroptopError, match=says) as refusal:
        learner_of(**options)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("net", "options", "says"),
    [
        ("resnet19", {}, "--net takes resnet18, timm:NAME or torchvision:NAME, not resnet19"),
        ("resnet18", {"pretrained": True}, "--pretrained takes a net of a library"),
        ("resnet18", {"input_size": 64}, "--input-size takes a net of a library"),
    ],
)
def test_a_net_of_droptops_own_has_none_of_it(net, options, says):
    with pytest.raises(BadRequest, match=says):
        make_learner("er", SPEC, net=net, **options)


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(BadRequest, match=r"--net timm:resnet9 takes timm: pip install 'droptop\[timm\]'"):
        learner_of("resnet9")


@pytest.mark.parametrize("pretrained", [False, True])
def test_only_timm_has_tags_after_a_dot(pretrained, monkeypatch):
    def unknown(name, **_):
        raise ValueError(f"Unknown model {name}")

    models = SimpleNamespace(list_models=lambda module: ["resnet18"], get_model=unknown, get_model_weights=unknown)
    monkeypatch.setitem(sys.modules, "torchvision", SimpleNamespace(models=models))
    says = "lists, not torchvision:resnet18.x; near it are torchvision:resnet18$"
    with pytest.raises(BadRequest, match=says):
        make_learner("er", SPEC, net="torchvision:resnet18.x", pretrained=pretrained)


def test_prompts_are_given_to_a_plain_vit_that_computes_what_timms_does():
    learner = learner_of("vit_bit_patch4_24", "l2p", "none", weights="random")
    theirs = learner_of("vit_bit_patch4_24", "ncm", "none", weights="random").model.net
    x = torch.randn(2, 3, 24, 24)
    with torch.no_grad():
        assert torch.allclose(learner.model.vit.eval().features(x).pooled, theirs.eval()(x), atol=1e-5)
    assert learner.mean.flatten().tolist() == pytest.approx([0.5, 0.4, 0.3])


@pytest.mark.parametrize("method", ["er", "scr", "ncm", "ranpac"])
def test_bf16_computes_near_fp32_and_gives_what_fp32_does(method):
    options = {"weights": "random"} if method in ON_FROZEN else {}
    options |= {"projections": 20} if method == "ranpac" else {}
    exact, rough = (learner_of("resnet9", method, precision=each, **options) for each in ("fp32", "bf16"))
    x = rough.normalise(toy_batches(1)[0][0])
    with torch.no_grad():
        seen, expected = rough.model(x), exact.model(x)
    assert seen.dtype == expected.dtype == (torch.float64 if method in ON_FROZEN else torch.float32)
    assert not torch.equal(seen.float(), expected.float())
    assert torch.allclose(seen, expected, atol=0.05)
    feed(rough, toy_batches(3))


@pytest.mark.parametrize("kind", ["pt2", "safetensors"])
@pytest.mark.parametrize("method", ["er", "scr", "pcr", "ncm"])
def test_a_net_is_exported(method, kind, tmp_path):
    options = {"weights": "random"} if method == "ncm" else {}
    learner = feed(learner_of("resnet9", method, **options), toy_batches(3))
    assert export(learner, tmp_path / f"net.{kind}") < 1e-4


def test_a_learner_goes_on_exactly_from_its_state():
    batches = toy_batches(6)
    whole = feed(learner_of("efficientnet_bit"), batches)
    half = feed(learner_of("efficientnet_bit"), batches[:3])
    other = learner_of("efficientnet_bit")
    other.load_state_dict({name: value.clone() for name, value in half.state_dict().items()})
    assert differences(whole.state_dict(), feed(other, batches[3:]).state_dict()) == []
    assert isinstance(other.model, LibraryNet)


def test_layers_that_compute_more_than_torchs_have_no_gradients_of_groups():
    class NormAndActivation(nn.BatchNorm2d):
        def forward(self, x):
            return super().forward(x).relu()

    with pytest.raises(BadRequest, match="NormAndActivation"):
        check_model(nn.Sequential(nn.Conv2d(3, 4, 1), NormAndActivation(4)), torch.zeros(3, 8, 8))


def test_a_run_notes_the_version_goes_on_and_predicts(tmp_path, here):
    out = tmp_path / "out"
    flags = ["--net", "timm:resnet9", "--weights", "random", "--limit", 32, "--memory", 40, "--split", "0,1/2,3"]
    done = here("run", *flags, "--maps", 2, "--seeds", 1, "--out", out)
    assert done.returncode == 0, done.stderr
    assert 'net = "timm:resnet9"' in (out / "config.toml").read_text()
    environment = out / "environment.json"
    noted = json.loads(environment.read_text())
    assert "timm" in noted["versions"]  # null where the package is the stand-in alone
    learner = droptop.load_learner(out)
    assert learner.model.size == (24, 24)
    environment.write_text(json.dumps(noted | {"versions": noted["versions"] | {"timm": "0.1"}}))
    again = here("resume", out, "--seeds", 2)
    assert again.returncode == 0, again.stderr
    assert "versions changed since this run began" in again.stdout + again.stderr
    assert here("export", out, "--format", "onnx", "--out", tmp_path / "net.onnx").returncode == 0
