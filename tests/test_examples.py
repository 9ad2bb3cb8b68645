"""The examples, as they are: their files are run."""

import ast
import re
import runpy
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name, capsys):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        names = runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return names, dict(re.findall(r"^(\w+): ([\d.]+)%$", capsys.readouterr().out, re.MULTILINE))


def code_lines(path):
    """Lines of a file with something on them that runs."""
    source = path.read_text()
    told = ast.parse(source).body[0]  # the docstring
    lines = source.splitlines()[told.end_lineno :]
    return [line for line in lines if line.strip() and not line.strip().startswith("#")]


def test_a_loop_of_ones_own(capsys):
    names, accuracy = run("own_loop.py", capsys)
    assert len(code_lines(EXAMPLES / "own_loop.py")) <= 25
    assert accuracy.keys() == names["stream"].tests.keys()
    assert all(float(value) > 15 for value in accuracy.values())  # of ten classes
    assert names["layer"].steps == len(names["stream"])
    assert len(names["memory"][1].unique()) == 10


@pytest.mark.filterwarnings("ignore")  # Lightning has opinions
def test_lightning(capsys, tmp_path):
    pytest.importorskip("lightning")
    names, accuracy = run("lightning_module.py", capsys)
    assert accuracy.keys() == names["stream"].tests.keys()
    assert all(float(value) > 15 for value in accuracy.values())
    module, trainer = names["module"], names["trainer"]
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    again = names["DebiasedReplay"](names["small_net"](), "0", "1", names["stream"].spec.shape, 10)
    state = torch.load(tmp_path / "last.ckpt", weights_only=True)
    again.load_state_dict(state["state_dict"])
    again.on_load_checkpoint(state)
    assert again.layer.steps == len(names["stream"])
    assert torch.equal(again.layer.state_dict()["generator"], module.layer.state_dict()["generator"])
    assert torch.equal(again.memory[1], module.memory[1])
