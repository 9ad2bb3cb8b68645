"""Copies of the user's own files in a run folder: where the files are gone, they run on trust, and only then."""

import importlib.util
import json
import shutil
import sys
import textwrap
from hashlib import sha256
from importlib._bootstrap_external import _code_to_timestamp_pyc
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from safetensors.torch import load_file

from droptop import BadRequest, load_learner, resume
from droptop.cli import main
from droptop.runs.kept_files import kept
from droptop.system import trusted_files, user_files

from compasses import FILE
from pictures import picture, save

METHOD = """
    from droptop.methods import ER

    class Mine(ER):
        pass
"""
DEBIAS = """
    from droptop import Debiaser

    class Darker(Debiaser):
        def images(self, x):
            return x * 0.9
"""
MODEL = """
    from torch import nn

    class Net(nn.Sequential):
        def __init__(self):
            first, last = nn.Conv2d(3, 4, 3, 2, 1), nn.Sequential(nn.Conv2d(4, 4, 3, 2, 1), nn.ReLU())
            super().__init__(first, last, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 4))
"""
NAMES = {"method/mine.py": METHOD, "data/mine.py": FILE, "darker.py": DEBIAS, "model.py": MODEL}
# What a learner is made of: no stream.
NEEDED = ("mine-2.py", "darker.py", "model.py")
COPIES = {"mine.py": "data/mine.py", "mine-2.py": "method/mine.py", "darker.py": "darker.py", "model.py": "model.py"}


class Made(NamedTuple):
    """Hold a run of one seed, and the same with two that never stopped, by the files in a folder."""

    began: Path
    whole: Path
    files: Path
    mark: Path  # has a line for every import of such a file

    def imports(self):
        """Return which files were imported since the last call; forget them, as if this were another process."""
        forget()
        lines = self.mark.read_text().splitlines() if self.mark.exists() else []
        self.mark.unlink(missing_ok=True)
        return set(lines)


def forget():
    trusted_files._admitted.clear()
    options = ("data", "method", "debias", "model")
    for name in [name for name in sys.modules if name.startswith(tuple(f"droptop_{option}_" for option in options))]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("kept")
    made = Made(place / "began", place / "whole", place / "own", place / "mark")
    for name, text in NAMES.items():
        file = made.files / name
        file.parent.mkdir(parents=True, exist_ok=True)
        mark = f"with open({str(made.mark)!r}, 'a') as file:\n    file.write(__file__ + chr(10))\n"
        file.write_text(mark + textwrap.dedent(text))
    asked = ["--data", made.files / "data/mine.py", "--method", made.files / "method/mine.py"]
    asked += ["--debias", made.files / "darker.py", "--model", made.files / "model.py", "--first", "0", "--last", "1"]
    asked += ["--memory", 16, "--memory-batch", 8, "--maps", 4]
    for out, seeds in ((made.began, 1), (made.whole, 2)):
        assert main(["run", *map(str, asked), "--seeds", str(seeds), "--out", str(out)]) == 0
    assert made.imports() == {str(made.files / name) for name in NAMES}
    save(picture(0), place / "photo.png")
    return made


@pytest.fixture
def moved(made, tmp_path):
    """Return a copy of the run in another place, while its files are gone."""
    away = made.files.with_name("away")
    run = shutil.copytree(made.began, tmp_path / "moved")
    made.files.rename(away)
    made.imports()
    yield run
    forget()
    shutil.rmtree(made.files, ignore_errors=True)
    away.rename(made.files)


def contents(run):
    """Return the bytes of all that a run has found."""
    names = ("summary.json", "config.toml", "seed-*/metrics.jsonl", "seed-*/result.json", "seed-*/checkpoints/*")
    return {str(path.relative_to(run)): path.read_bytes() for name in names for path in run.glob(name)}


def test_copies_have_the_bytes_of_the_files_and_one_name_each(made):
    for name, original in COPIES.items():
        assert (made.began / "files" / name).read_bytes() == (made.files / original).read_bytes()
    assert {path.name for path in (made.began / "files").iterdir()} == COPIES.keys()
    assert {copy.name: copy.path for copy in kept(made.began)} == {
        name: str(made.files / original) for name, original in COPIES.items()
    }


def test_a_moved_run_goes_on_to_the_same_bytes_on_trust_and_not_without(made, moved, here):
    before = contents(moved)
    done = here("resume", moved, "--seeds", "2")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    for said in (
        f"{moved} needs mine.py, mine.py, darker.py, model.py, which are gone",
        f"{moved / 'files/mine-2.py'}",
        f"read them, then `droptop resume {moved} --seeds 2 --trust` runs them",
    ):
        assert said in done.stderr
    with pytest.raises(BadRequest, match=r"read them, then trust=True runs them"):
        resume(moved, seeds=2)
    assert (made.imports(), contents(moved)) == (set(), before)
    done = here("resume", moved, "--seeds", "2", "--trust")
    assert (done.returncode, done.stderr) == (0, "")
    assert made.imports() == {str(moved / "files" / name) for name in COPIES}
    assert contents(moved) == contents(made.whole)


def test_a_learner_is_loaded_on_trust(made, moved, here):
    photo = made.mark.with_name("photo.png")
    for words in (["predict", moved, photo, "--json"], ["export", moved, "--format", "safetensors"]):
        done = here(*words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "read them, then the same command with --trust runs them" in done.stderr
    with pytest.raises(BadRequest, match=r"trust=True runs them"):
        load_learner(moved / "seed-0")
    assert made.imports() == set()
    predicted = here("predict", moved, photo, "--json", "--trust")
    assert here("export", moved, "--format", "safetensors", "--trust").returncode == 0
    assert load_learner(moved / "seed-0", trust=True).clock["step"] == load_learner(moved, trust=True).clock["step"]
    assert made.imports() == {str(moved / "files" / name) for name in NEEDED}
    shutil.copytree(made.files.with_name("away"), made.files)
    assert here("predict", made.began, photo, "--json").stdout == predicted.stdout
    assert predicted.stdout.count("\n") == 1
    assert here("export", made.began, "--format", "safetensors").returncode == 0
    one, other = (load_file(run / "seed-0/model.safetensors") for run in (moved, made.began))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    (made.began / "seed-0/model.safetensors").unlink()


@pytest.mark.parametrize("change", ["changed", "removed"])
def test_a_copy_that_is_not_the_recorded_one_is_never_run(change, made, moved, here):
    copy = moved / "files/darker.py"
    if change == "changed":
        copy.write_text(copy.read_text() + "\n")
    else:
        copy.unlink()
    for words in (["resume", moved, "--seeds", "2", "--trust"], ["resume", moved, "--seeds", "2"]):
        done = here(*words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert f"{copy} {'has another SHA-256' if change == 'changed' else 'is not there'}" in done.stderr
    assert str(copy) not in made.imports()


def test_what_a_cache_beside_a_copy_has_compiled_is_not_run(made, moved, tmp_path):
    """Python would take it in place of the file that was read."""
    file = moved / "files/darker.py"
    cache, bad = Path(importlib.util.cache_from_source(str(file))), tmp_path / "bad"
    code = compile(f"open({str(bad)!r}, 'w').close()\n" + file.read_text(), str(file), "exec")
    cache.parent.mkdir()
    cache.write_bytes(_code_to_timestamp_pyc(code, int(file.stat().st_mtime), file.stat().st_size))
    load_learner(moved, trust=True)
    assert str(file) in made.imports()
    assert not bad.exists()


def test_commands_that_look_run_neither_a_file_nor_its_copy(made, moved, here):
    shutil.copytree(made.files.with_name("away"), made.files)
    for command in ("status", "report"):
        assert here(command, moved).returncode == 0
    assert "files/mine.py" not in (moved / "report.html").read_text()
    assert made.imports() == set()


def test_a_file_that_has_changed_is_replaced_by_its_copy_on_trust(made, moved, here):
    shutil.copytree(made.files.with_name("away"), made.files)
    file = made.files / "method/mine.py"
    file.write_text(file.read_text() + "# edited\n")
    done = here("resume", moved, "--seeds", "2")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"needs mine.py, which is not what it began with; {moved / 'files/mine-2.py'} (SHA-256 " in done.stderr
    assert made.imports().isdisjoint({str(file), str(moved / "files/mine-2.py")})
    user_files.named(str(file))  # that it may be executed makes it no part of this run
    made.imports()
    assert here("resume", moved, "--seeds", "2").returncode == here("predict", moved, made.began).returncode == 2
    assert made.imports().isdisjoint({str(file), str(moved / "files/mine-2.py")})
    assert here("resume", moved, "--seeds", "2", "--trust").returncode == 0
    assert str(moved / "files/mine-2.py") in (ran := made.imports())
    assert {str(file), str(moved / "files/darker.py")} & ran == set()  # the others are where they were
    assert contents(moved) == contents(made.whole)


def test_a_stream_that_has_moved_has_its_copy_still(made, moved, here):
    shutil.copytree(made.files.with_name("away"), made.files)
    (made.files / "data/mine.py").rename(made.files / "elsewhere.py")
    done = here("resume", moved, "--data", made.files / "elsewhere.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert {copy.name: copy.path for copy in kept(moved)}["mine.py"] == str(made.files / "elsewhere.py")
    (made.files / "elsewhere.py").unlink()
    made.imports()
    assert "--trust` runs it" in here("resume", moved, "--seeds", "2").stderr
    load_learner(moved, trust=True)


def test_files_of_somebody_else_run_on_trust_and_from_then_on_without(made, moved, here, monkeypatch, tmp_path):
    """All is there and is what the run began with, but this user has named none of it."""
    shutil.copytree(made.files.with_name("away"), made.files)
    monkeypatch.setenv("DROPTOP_TRUSTED", str(tmp_path / "another/trusted.json"))
    photo, files = made.mark.with_name("photo.png"), [made.files / COPIES[name] for name in NEEDED]
    done = here("predict", moved, photo)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    for file in files:
        assert f"{file} (SHA-256 {sha256(file.read_bytes()).hexdigest()[:12]})" in done.stderr
    assert "which are not among the files that you have named: read them, then the same" in done.stderr
    assert made.imports() == set()
    done = here("predict", moved, photo, "--trust")
    assert done.returncode == 0
    assert made.imports() == set(map(str, files))
    again = here("predict", moved, photo)
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert made.imports() == set(map(str, files))
    assert "would run" in here("resume", moved).stderr  # which needs the stream too
    assert made.imports() == set()


def test_an_older_folder_has_no_copies(made, moved, here):
    environment = json.loads((moved / "environment.json").read_text())
    del environment["files"]
    (moved / "environment.json").write_text(json.dumps(environment))
    for words in (["resume", moved, "--seeds", "2"], ["resume", moved, "--seeds", "2", "--trust"]):
        done = here(*words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "there is no such file" in done.stderr
    assert made.imports() == set()
