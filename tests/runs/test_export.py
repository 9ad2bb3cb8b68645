"""Exported files, read by what others read them with, say what the learner says."""

import dataclasses
import json
import re

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

from droptop import BadRequest, DroptopError, export, make_learner
from droptop.cli import main
from droptop.nets import NetConfig, build, load_weights
from droptop.runs import export as exporting
from droptop.runs.config import configure
from droptop.runs.requests import begin
from droptop.training.seed_run import SeedRun

from plans import plan
from toys import FLOAT_SPEC, SPEC, feed, toy_batches, toy_learner

IMAGES = torch.randint(0, 256, (5, *SPEC.shape), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def of_two_classes(method="er", **options):
    """A learner that has seen two classes of four."""
    return feed(toy_learner(method, **options), toy_batches(4)[:2])


def by_onnxruntime(path):
    session = pytest.importorskip("onnxruntime").InferenceSession(path)
    assert [(value.name, value.shape[1:]) for value in session.get_inputs()] == [("images", list(SPEC.shape))]
    return session.get_modelmeta().custom_metadata_map, lambda x: torch.from_numpy(
        session.run(["logits"], {"images": x.numpy()})[0]
    )


def by_torch(path):
    about = {"metadata.json": ""}
    module = torch.export.load(path, extra_files=about).module()
    return json.loads(about["metadata.json"]), module


@pytest.mark.parametrize(
    ("ending", "method", "options"),
    [
        ("onnx", "er", {}),
        ("onnx", "l2p", {"input_size": 32, "depth": 2, "prompt_blocks": 2}),
        ("pt2", "dualprompt", {"depth": 2, "general_blocks": 1, "expert_blocks": 1}),
    ],
)
def test_an_exported_net_takes_images_and_gives_logits(ending, method, options, tmp_path):
    if ending == "onnx":
        pytest.importorskip("onnxscript")
    learner, path = of_two_classes(method, **options), tmp_path / f"net.{ending}"
    assert export(learner, path, {"seed": "7"}) < 1e-5
    about, run = by_onnxruntime(path) if ending == "onnx" else by_torch(path)
    assert (json.loads(about["classes"]), about["seed"]) == (["a", "b"], "7")
    assert "pixels in 0..1" in about["input"]
    for x in (IMAGES, IMAGES[:1]):  # any number
        with torch.no_grad():
            torch.testing.assert_close(run(x / 255), learner.predict(x)[:, :2], atol=1e-5, rtol=1e-5)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_weights_are_exported_alone(tmp_path):
    learner, path = of_two_classes(), tmp_path / "net.safetensors"
    assert export(learner, path) == 0
    net = build(NetConfig(width=4, stem="3x3"), 3, 4, seed=1)
    load_weights(net, path)  # what --weights does
    with torch.no_grad():
        logits = net.eval()((IMAGES / 255 - 0.5) / 0.25)
    torch.testing.assert_close(logits[:, :2], learner.predict(IMAGES)[:, :2])
    with safe_open(path, "pt") as file:
        about = file.metadata()
    assert (json.loads(about["classes"]), json.loads(about["seen"])) == (list("abcd"), ["a", "b"])
    assert (json.loads(about["mean"]), json.loads(about["std"])) == (0.5, 0.25)
    prompts = tmp_path / "prompts.safetensors"
    export(of_two_classes("l2p"), prompts)
    with safe_open(prompts, "pt") as file:
        names = set(file.keys())
    assert {"blocks.0.attn.qkv.weight", "head.weight", "cls_token", "prompts.keys"} <= names


def test_a_given_model_is_exported(tmp_path):
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, 2),
        nn.ReLU(),
        nn.Conv2d(4, 8, 3, 2),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )
    learner = feed(make_learner("er", SPEC, model=net, first="1", last="4", memory=20, memory_batch=6), toy_batches(4))
    for ending in ("pt2", "safetensors"):
        export(learner, tmp_path / f"net.{ending}")
    assert load_file(tmp_path / "net.safetensors").keys() == net.state_dict().keys()
    torch.testing.assert_close(by_torch(tmp_path / "net.pt2")[1](IMAGES / 255), learner.predict(IMAGES))


def test_float_images_are_exported_too(tmp_path):
    spec = dataclasses.replace(FLOAT_SPEC, mean=0.5, std=(0.25, 0.5, 1.0))
    learner = feed(toy_learner("finetune", spec=spec), toy_batches(2, spec=spec))  # which keeps none either
    export(learner, tmp_path / "net.pt2")
    about, run = by_torch(tmp_path / "net.pt2")
    assert "pixels in 0..1, not normalised" in about["input"]
    x = torch.rand(3, *SPEC.shape)
    torch.testing.assert_close(run(x), learner.predict(x), atol=1e-5, rtol=1e-5)


def test_an_export_that_differs_is_removed(tmp_path, monkeypatch):
    monkeypatch.setitem(
        exporting.WRITERS,
        "pt2",
        lambda net, images, path, about: (
            path.write_bytes(b"wrong"),
            net(images) + 2e-4 * net(images).abs().max().clamp(min=1),
        )[1],
    )
    with pytest.raises(DroptopError, match=r"net.pt2 was not written: its logits differ from the learner's by 0.0002"):
        export(of_two_classes(), tmp_path / "net.pt2")
    assert list(tmp_path.iterdir()) == []


def test_impossible_exports_are_refused(tmp_path, monkeypatch):
    learner = of_two_classes()
    (tmp_path / "there.pt2").write_bytes(b"mine")
    for path, reason in [
        ("there.pt2", "exists already"),
        ("net.tflite", "ends in .onnx, .safetensors, .pt2"),
        ("nowhere/net.pt2", "not an existing folder"),
    ]:
        with pytest.raises(BadRequest, match=reason):
            export(learner, tmp_path / path)
    assert (tmp_path / "there.pt2").read_bytes() == b"mine"
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(BadRequest, match=r"--format onnx takes onnxruntime: pip install 'droptop\[export\]'"):
        export(learner, tmp_path / "net.onnx")
    monkeypatch.setattr(learner, "given", lambda model, first, rows: range(int(first.sum()))[:0])
    with pytest.raises(DroptopError, match="--format safetensors takes its weights alone"):
        export(learner, tmp_path / "net.pt2")
    assert [path.name for path in tmp_path.iterdir()] == ["there.pt2"]


def test_the_command_exports_a_run(tmp_path, capsys):
    options = {"limit": 32, "tasks": 1, "width": 4, "memory": 20, "seeds": 1, "precision": "bf16"}
    config = configure("fashion", "er", "none", **options)
    begin(plan(config), tmp_path / "run")
    SeedRun(config, tmp_path / "run", 0, lambda progress: None)()
    assert main(["export", str(tmp_path / "run"), "--format", "safetensors"]) == 0
    said, path = capsys.readouterr(), tmp_path / "run/seed-0/model.safetensors"
    assert re.fullmatch(rf"{path}: \d+\.\d MiB, 10 classes; its logits are within 0 of the learner's\n", said.out)
    with safe_open(path, "pt") as file:
        assert file.metadata().items() >= {"data": "fashion", "method": "er", "debias": "none", "step": "1"}.items()
    assert main(["export", str(tmp_path / "run"), "--format", "safetensors"]) == 2
    assert "exists already: choose another name, or pass --force" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "run"), "--format", "safetensors", "--force"]) == 0
    assert main(["export", str(tmp_path / "run"), "--format", "pt2", "--out", "net.onnx"]) == 2
    assert "--out takes a file that ends in .pt2" in capsys.readouterr().err
