"""What a device is: words, refusals in one line, and a run that is the same one on any GPU of its kind."""

import pytest
import torch
from fake_gpus import pretend

from droptop import BadRequest, make_learner
from droptop.cli import main
from droptop.options import flatten
from droptop.runs.config import configure
from droptop.runs.environment import environment
from droptop.runs.manifest import configuration_of
from droptop.system import devices

from toys import SPEC

GPUS = ["cuda", "cuda:0", "cuda:1", "cuda:0,2", "cuda:all"]


@pytest.mark.parametrize(
    ("device", "kind", "names"),
    [
        ("cpu", "cpu", ["cpu"]),
        ("mps", "mps", ["mps"]),
        ("cuda", "cuda", ["cuda"]),
        ("cuda:1", "cuda", ["cuda:1"]),
        ("cuda:0,2", "cuda", ["cuda:0", "cuda:2"]),
        ("cuda:all", "cuda", ["cuda:0", "cuda:1", "cuda:2"]),
    ],
)
def test_words(monkeypatch, device, kind, names):
    pretend(monkeypatch)
    devices.check_form(device)
    devices.check_here(device) if kind == "cuda" else None
    assert (devices.kind_of(device), devices.each(device)) == (kind, names)
    assert devices.is_several(device) == (len(names) > 1)


@pytest.mark.parametrize(
    "device", ["gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1,", "cuda:0,0", "cuda:0,00", "cpu:0", 1]
)
def test_what_is_no_device_is_refused(device):
    with pytest.raises(BadRequest, match=r"--device takes cpu, cuda, a GPU such as cuda:1, .* or mps, not "):
        devices.check_form(device)


@pytest.mark.parametrize(
    ("gpus", "device", "said"),
    [
        (1, "cuda:3", "--device cuda:3: this machine has 1 GPU (cuda:0)"),
        (3, "cuda:0,3", "--device cuda:0,3: this machine has 3 GPUs (cuda:0 to cuda:2)"),
        (0, "cuda:all", "--device takes cpu where torch finds no GPU, not cuda:all"),
        (0, "cuda:0", "--device takes cpu where torch finds no GPU, not cuda:0"),
        (0, "mps", "--device takes cpu where torch finds no GPU of Apple's, not mps"),
    ],
)
def test_a_gpu_that_is_not_here_is_refused_before_anything_is_written(
    gpus, device, said, tmp_path, monkeypatch, capsys
):
    pretend(monkeypatch, gpus)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert main(["run", "--device", device, "--limit", "64", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(said)
    assert not (tmp_path / "out").exists()


def test_which_gpu_is_no_part_of_what_a_run_is():
    """By both hashes, that of checkpoints and folders and that of manifests; another kind of device is one."""
    configs = {device: configure("fashion", "er", "droptop", device=device) for device in (*GPUS, "cpu", "mps")}
    for hashed in (lambda config: config.fingerprint(), lambda config: config.configuration()):
        hashes = {device: hashed(config) for device, config in configs.items()}
        assert len({hashes[device] for device in GPUS}) == 1
        assert len(set(hashes.values())) == 3
    assert configuration_of({"device": "cuda:1", "seeds": 2}) == configuration_of({"device": "cuda"})
    assert flatten(configs["cuda:1"])["device"] == "cuda:1"  # config.toml says where it trains


def test_the_environment_notes_which_gpus(monkeypatch):
    pretend(monkeypatch)
    environment.cache_clear()
    noted = {device: environment(device, 1) for device in (*GPUS, "cuda:7")}
    environment.cache_clear()
    assert [noted[device]["device"] for device in GPUS] == GPUS
    assert noted["cuda:1"]["device_name"] == "GPU of cuda:1"
    assert noted["cuda:0,2"]["device_name"] == "GPU of cuda:0, GPU of cuda:2"
    assert noted["cuda:7"]["device_name"] is None  # a folder is read on another machine


def test_one_learner_lives_on_one_device(monkeypatch):
    pretend(monkeypatch)
    with pytest.raises(BadRequest, match="--device takes one device here, such as cuda:0, not cuda:all"):
        make_learner("er", SPEC, device="cuda:all", width=4)


def test_an_object_of_this_process_takes_one_device(monkeypatch, tmp_path):
    from droptop import Samples, Stream, StreamConfig, run

    from toys import toy_batches

    pretend(monkeypatch)
    [(x, y, _)] = toy_batches(1)
    stream = Stream("toy", SPEC, Samples(x, y), {}, StreamConfig(tasks=1, batch=8), seed=0)
    with pytest.raises(BadRequest, match="--device takes one device with an object of your own"):
        run(stream, device="cuda:all", seeds=1, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_bf16_is_refused_on_apples_gpus():
    with pytest.raises(BadRequest, match="--precision takes fp32 or tf32 with --device mps, not bf16"):
        configure("fashion", device="mps", precision="bf16")
