"""A method in one file, outside of the package."""

import csv
import json
import pickle
import re
import shlex
import sys
import textwrap

import pytest

import droptop
from droptop import BadRequest, DroptopError, configure
from droptop.cli import main
from droptop.cli.report import command as made_by
from droptop.cli.run_flags import parse
from droptop.methods import METHODS, find
from droptop.runs.loading import find_seed, restore
from droptop.runs.requests import load
from droptop.system import trusted_files, user_files

from pictures import picture, save
from plans import plan
from studies import write_study
from toys import ON_VIT

MINE = """
    from dataclasses import dataclass

    import torch.nn.functional as F

    from droptop import Learner, LearnerConfig

    @dataclass(frozen=True)
    class MineConfig(LearnerConfig):
        smoothing: float = 0.1
        '''Of the labels.'''

    class Mine(Learner):
        config_type = MineConfig

        def loss(self, logits, batch):
            return F.cross_entropy(logits, batch.y, label_smoothing=self.config.smoothing)
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent(MINE))
    return path


def test_a_method_in_a_file_runs_and_resumes(mine, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    asked = ["--method", "mine.py", "--smoothing", "0.2", "--data", "fashion", "--limit", "64", "--width", "4"]
    assert main(["compare", *asked, "--seeds", "2", "--out", "out"]) == 0
    assert "mine on fashion" in capsys.readouterr().out
    assert f'method = "{mine}"' in (tmp_path / "out/config.toml").read_text()
    assert "smoothing = 0.2" in (tmp_path / "out/config.toml").read_text()
    environment = json.loads((tmp_path / "out/environment.json").read_text())
    assert len(environment["method"]) == 64
    monkeypatch.chdir("/")
    assert main(["resume", str(tmp_path / "out")]) == 0
    mine.write_text(mine.read_text() + "# edited\n")
    config = tmp_path / "out/config.toml"
    before = config.read_bytes()
    assert main(["resume", str(tmp_path / "out"), "--seeds", "3"]) == 2
    assert "is not what" in capsys.readouterr().err
    assert restore(find_seed(tmp_path / "out")).notes == [f"{mine} has changed since {tmp_path / 'out/droptop'} began"]
    assert config.read_bytes() == before
    config.write_text(config.read_text().replace(str(mine), "mine.py"))
    assert main(["resume", str(tmp_path / "out")]) == 2
    assert "takes an absolute path" in capsys.readouterr().err


def forget_files():
    """Forget the methods that this process has loaded and may execute, as if it were another one."""
    trusted_files._admitted.clear()
    for name in [name for name in sys.modules if name.startswith("droptop_method_")]:
        del sys.modules[name]


def test_results_are_shown_without_the_file(mine, tmp_path, here):
    """Which was moved, and makes the same again from where it lies now."""
    mine.write_text(mine.read_text().replace("    smoothing", "    unset: int | None = None\n    smoothing"))
    out, moved = tmp_path / "out", tmp_path / "moved.py"
    asked = ["--method", str(mine), "--smoothing", "0.2", "--data", "fashion", "--limit", "64", "--width", "4"]
    table = here("compare", *asked, "--seeds", "1", "--out", out).stdout.partition("mine on fashion")[2]
    mine.rename(moved)
    forget_files()
    assert here("status", out).returncode == 0
    done = here("resume", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.partition("mine on fashion")[2] == table
    done = here("report", out)
    assert done.returncode == 0, done.stderr
    page = (out / "report.html").read_text()
    assert "--smoothing 0.2" in page
    assert "was changed after the run began" not in page
    words = shlex.split(made_by(out).replace(str(mine), str(moved)))
    again = configure("fashion", str(moved), smoothing=0.2, limit=64, width=4, seeds=1)
    assert parse("compare", words[2:]).plan == plan(again, "compare")
    for command in (["resume", "--seeds", "2"], ["predict", mine.parent / "photo.png"], ["export", "--format", "onnx"]):
        save(picture(0), mine.parent / "photo.png")
        done = here(command[0], out, *command[1:])
        assert done.returncode == 2
        assert f"needs {mine.name}, which is gone; {out / 'files' / mine.name} (SHA-256 " in done.stderr
        assert ") is the copy of what it began with: read it" in done.stderr
        assert done.stderr.count("\n") == 1
    assert not (out / "droptop/seed-1").exists()


def test_a_preset_of_a_file_that_is_gone_is_read_as_noted(tmp_path):
    path = tmp_path / "prompts.py"
    path.write_text("from droptop.methods import L2P\n\n\nclass Prompts(L2P):\n    pass\n")
    asked = plan(configure("fashion", str(path), "none", preset="as-published", pull=0.5))
    (tmp_path / "config.toml").write_text(asked.toml())
    path.unlink()
    forget_files()
    [arm] = load(tmp_path).arms.values()
    assert (arm.learner.preset, arm.learner.pull, arm.learner.lr_scale) == ("as-published", 0.5, "batch/256")


def test_studies_are_shown_without_the_file(mine, tmp_path, here):
    study, out = write_study(tmp_path / "study.toml", method=["er", str(mine)], seeds=1), tmp_path / "out"
    done = here("sweep", study, "--out", out)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"{study} would run {mine} (SHA-256 " in done.stderr
    assert here("sweep", study, "--out", out, "--trust").returncode == 0
    forget_files()
    assert here("sweep", study, "--out", out).returncode == 0  # it is the user's from then on
    before = {command: here(command, out).stdout for command in ("status", "results", "report")}
    assert "4 done, 0 running, 0 waiting, 0 failed" in before["status"]
    assert here("results", out, "--export", tmp_path / "rows.csv").returncode == 0
    shown = csv.DictReader((tmp_path / "rows.csv").read_text().splitlines())
    assert {row["method"] for row in shown} == {"er", "mine"}
    assert "mine droptop: clean" in (out / "report.html").read_text()
    mine.unlink()
    forget_files()
    for command, said in before.items():
        done = here(command, out)
        assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    (out / "cells.json").unlink()  # then the folders say which cells there are
    done = here("status", out)
    assert (done.returncode, done.stdout) == (0, before["status"]), done.stderr
    assert f"--method {mine}: there is no such file; cells are those that {out} holds" in done.stderr
    done = here("sweep", "--out", out)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"study.toml needs {mine.name}, which is gone; {out / 'runs'}" in done.stderr
    assert here("sweep", "--out", out, "--trust").returncode == 0


def test_one_of_several_is_chosen_by_name(mine):
    mine.write_text(mine.read_text() + "\nclass Other(Mine):\n    preset = {'kappa_0': 1.0}\n")
    user_files.named(str(mine))
    assert find(f"{mine}:Other").__name__ == "Other"
    assert configure("fashion", f"{mine}:Other").droptop.kappa_0 == 1.0
    with pytest.raises(BadRequest, match=r"defines Mine, Other; choose one: .*mine.py:Mine"):
        find(str(mine))
    with pytest.raises(BadRequest, match="defines Mine, Other"):
        find(f"{mine}:Third")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "there is no such file"),
        ("x = 1\n", "defines no class derived from droptop.Learner"),
        ("from droptop import Learner\n", "defines no class"),
        ("import torch\n\nx = 1 / 0\n", "line 3: ZeroDivisionError: division by zero"),
        ("class\n", "line 1: SyntaxError"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path, capsys, text, reason):
    path = tmp_path / "bad.py"
    if text is not None:
        path.write_text(text)
    assert main(["run", "--method", str(path), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert str(path) in error
    assert reason in error


@pytest.mark.parametrize("method", METHODS)
def test_configurations_survive_pickling(method):
    weights = {"weights": "random"} if method in ON_VIT else {}
    for debias in ("none", "droptop", "no-fusion"):
        config = configure("fashion-background", method, debias, lr=0.3, seeds=3, limit=7, **weights)
        assert pickle.loads(pickle.dumps(config)) == config


def test_an_error_in_the_file_names_its_line(mine, tmp_path, capsys):
    mine.write_text(mine.read_text().replace("return F.cross", "raise ValueError('mine')\n        return F.cross"))
    assert (
        main(
            [
                "run",
                "--method",
                str(mine),
                "--data",
                "fashion",
                "--limit",
                "64",
                "--width",
                "4",
                "--seeds",
                "1",
                "--out",
                str(tmp_path / "out"),
            ]
        )
        == 1
    )
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert f"seed 0 failed: {mine}, line 17: ValueError: mine" in error


def test_workers_that_all_fail_are_not_waited_for(mine, tmp_path, monkeypatch, capsys):
    """Two processes fail alike: the second waits for its next order, and must not be given time to save."""
    monkeypatch.setattr("droptop.training.worker_pool.GRACE", 600.0)  # which this test would take
    mine.write_text(mine.read_text().replace("return F.cross", "raise ValueError('mine')\n        return F.cross"))
    assert (
        main(
            [
                "compare",
                "--method",
                str(mine),
                "--data",
                "fashion",
                "--limit",
                "64",
                "--width",
                "4",
                "--seeds",
                "1",
                "--out",
                str(tmp_path / "out"),
            ]
        )
        == 1
    )
    assert "ValueError: mine" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "says"), [("0.5", "a float"), ("logits", r"shape \(\d+, 10\) of torch.float32"), ("None", "a NoneType")]
)
def test_a_loss_that_is_no_number_is_a_line(given, says, tmp_path):
    file = tmp_path / "odd.py"
    text = "from droptop.methods import ER\n\n\nclass Odd(ER):\n    def loss(self, logits, batch):\n        return "
    file.write_text(f"{text}{given}\n")
    with pytest.raises(
        DroptopError,
        match=f"^{re.escape(str(file))}: Odd.loss is to give one number, as a floating point tensor, not {says}$",
    ):
        droptop.run("fashion", str(file), None, out=tmp_path / "out", limit=32, width=4, seeds=1)
