"""Runs of prompt learners: stopped and resumed, what they report, and that their weights stay theirs."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from droptop import BadRequest
from droptop.nets import ViTConfig, build
from droptop.runs import checkpoint
from droptop.runs.config import configure
from droptop.runs.records import read_maps
from droptop.runs.requests import begin, record_environment
from droptop.training.seed_run import Interrupted, SeedRun

from plans import plan
from toys import QUICK, SMALL_VIT, droptop

OPTIONS = SMALL_VIT | QUICK | {"limit": 64, "checkpoint_seconds": 0.0, "seeds": 1}


def files(run):
    seed = run / "seed-0"
    newest = checkpoint.newest_first(seed / "checkpoints")[0].with_suffix(".safetensors")
    records = sorted([*(seed / "maps").iterdir(), *(seed / "confusion").iterdir()])
    return [path.read_bytes() for path in (newest, seed / "metrics.jsonl", seed / "result.json", *records)]


@pytest.mark.parametrize("method", ["l2p", "dualprompt"])
def test_a_stopped_run_goes_on_to_the_same_bytes(method, tmp_path):
    config = configure("fashion", method, **OPTIONS)
    SeedRun(config, tmp_path / "whole", 0, lambda progress: None)()
    for steps in (3, 2):  # in the middle of a task, and at the end of one
        left = iter(range(steps))
        with pytest.raises(Interrupted):
            SeedRun(
                config, tmp_path / "parts", 0, lambda progress: None, stop=lambda left=left: next(left, None) is None
            )()
    SeedRun(config, tmp_path / "parts", 0, lambda progress: None)()
    assert files(tmp_path / "whole") == files(tmp_path / "parts")
    tensors = load_file(checkpoint.newest_first(tmp_path / "whole/seed-0/checkpoints")[0].with_suffix(".safetensors"))
    assert "model.vit.head.weight" in tensors
    assert not [name for name in tensors if ".blocks." in name]
    usage = json.loads(files(tmp_path / "whole")[2])["prompts"]
    assert (len(usage), len(usage[0])) == (5, 10)
    assert all(later >= earlier for earlier, later in zip(usage[0], usage[-1]))
    maps = read_maps(tmp_path / "whole", 0)
    assert [moment.step for moment in maps.moments] == list(range(1, 11))  # two steps a task
    assert maps.moments[-1].attention.shape == maps.moments[-1].dropped.shape == (64, 4, 4)


def test_resume_refuses_other_frozen_weights(tmp_path):
    model = build(ViTConfig(patch=4, width=16, depth=5, heads=2, input_size=16), 3, 7, 0, "random")
    path = tmp_path / "vit.safetensors"
    save_file(model.state_dict(), path)
    run, config = tmp_path / "run", configure("fashion", "l2p", **OPTIONS | {"weights": str(path)})
    begin(plan(config), run)  # and no further
    record_environment(run, config)
    with torch.no_grad():
        model.norm.bias += 1
    save_file(model.state_dict(), path)
    done = droptop("resume", run)
    assert done.returncode == 2
    assert (
        done.stderr == f"droptop: --weights {path} is not what {run} began with: its SHA-256 is another; "
        "take a new folder for it\n"
    )


def test_weights_are_part_of_the_environment(tmp_path):
    config = configure("fashion", "l2p", **OPTIONS)
    record_environment(tmp_path, config)
    assert json.loads((tmp_path / "environment.json").read_text())["weights"] == "random"
    record_environment(tmp_path, config)
    (tmp_path / "w").write_bytes(b"others")
    with pytest.raises(BadRequest, match="SHA-256 is another"):
        record_environment(tmp_path, configure("fashion", "l2p", weights=str(tmp_path / "w")))
