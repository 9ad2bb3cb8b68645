"""A folder from somebody else, which names files of code: no command runs them unless the user says so.

Every file writes a mark when it is imported. `LOOKING` only look; the others of `COMMANDS` would run what they name.
"""

import json
import pickle
import shutil
import sys
import warnings
from hashlib import sha256

import pytest

import droptop
from droptop import BadRequest, configure
from droptop.methods import find
from droptop.options import flatten
from droptop.runs.config import config_from_options
from droptop.runs.kept_files import Copy, noted
from droptop.runs.requests import begin
from droptop.runs.trust import trusted
from droptop.system import trusted_files
from droptop.system.toml_files import without_seal
from droptop.system.trusted_files import Untrusted, known

from pictures import picture, save
from plans import plan
from studies import write_study

OPTIONS = ("method", "debias", "data", "model", "log", "module")  # module: --log MODULE:CLASS
LOOKING = ("status", "results", "report")


@pytest.fixture(autouse=True)
def own_list(tmp_path, monkeypatch):
    """Have a list of this test's own, and a process that has admitted nothing."""
    monkeypatch.setenv("DROPTOP_TRUSTED", str(tmp_path / "state/trusted.json"))
    monkeypatch.setattr(trusted_files, "_admitted", set())


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """Return the folder of somebody else's files, one per option, each of which writes a mark when it is imported."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    for option in OPTIONS:
        text = f"with open({str(folder / 'mark')!r}, 'a') as mark:\n    mark.write({option!r})\nraise RuntimeError\n"
        (folder / f"evil_{option}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    return folder


def value_of(evil, option):
    file = f"{evil / f'evil_{option}.py'}"
    return {"module": "evil_module:Evil", "log": f"{file}:Evil", "debias": f"droptop+{file}"}.get(option, file)


def with_option(text, name, value):
    """Return TOML with an option in the place of the one that is there, or at its top."""
    lines = text.splitlines()
    at = [number for number, line in enumerate(lines) if line.startswith(f"{name} = ")]
    if name == "debias" and at:
        at = [number for number in at if "none" not in lines[number]] or at
    for number in at:
        lines[number] = f'{name} = "{value}"'
    return "\n".join([*([] if at else [f'{name} = "{value}"']), *lines]) + "\n"


def unseal(folder, *patterns):
    """Make the folder look as if a version without checksums had written it: whoever changes one can do that."""
    for path in folder.rglob("manifest.json"):
        path.unlink()
    for pattern in patterns:
        for path in folder.glob(pattern):
            path.write_text(without_seal(path.read_text()))


def poison(run, evil, *options):
    """Let a run folder name somebody else's files, with copies and hashes as if it had begun with them."""
    unseal(run, "config.toml", "*/config.toml")
    for place in (run, *(path.parent for path in run.glob("*/config.toml"))):
        file = place / "config.toml"
        for option in options:
            name = "log" if option == "module" else option
            file.write_text(with_option(file.read_text(), name, value_of(evil, option)))
        environment = json.loads((place / "environment.json").read_text())
        copies = []
        for option in options:
            data = (evil / f"evil_{option}.py").read_bytes()
            (place / "files").mkdir(exist_ok=True)
            (place / f"files/evil_{option}.py").write_bytes(data)
            copies.append(Copy(f"evil_{option}.py", sha256(data).hexdigest(), str(evil / f"evil_{option}.py")))
            environment[option] = sha256(data).hexdigest()
        (place / "environment.json").write_text(json.dumps(environment | {"files": noted(copies)}))
    return run


@pytest.fixture
def theirs(comparison, tmp_path):
    """Return a copy of a comparison, to be poisoned."""
    return shutil.copytree(comparison[0], tmp_path / "compared")


def refused(done, evil, *options):
    """Check that a command has refused in one line that names what it would run, and has run nothing."""
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    for option in options:
        digest = sha256((evil / f"evil_{option}.py").read_bytes()).hexdigest()
        assert f"{evil / f'evil_{option}.py'} (SHA-256 {digest[:12]})" in done.stderr
    assert not (evil / "mark").exists()


def test_commands_that_look_run_nothing(theirs, evil, here):
    poison(theirs, evil, *OPTIONS[:4], "module")
    for command in LOOKING:
        done = here(command, theirs)
        assert done.returncode == 0, done.stderr
        assert not (evil / "mark").exists(), command


def test_commands_that_look_at_a_study_run_nothing(swept_copy, evil, here):
    study = swept_copy / "study.toml"
    unseal(swept_copy, "study.toml", "runs/*/config.toml")
    for option in OPTIONS:
        study.write_text(
            with_option(study.read_text(), "log" if option == "module" else option, value_of(evil, option))
        )
    for config in swept_copy.glob("runs/*/config.toml"):
        config.write_text(with_option(config.read_text(), "method", value_of(evil, "method")))
    (swept_copy / "cells.json").unlink()  # by which nobody needs to read the study
    for command in LOOKING:
        assert here(command, swept_copy).returncode == 0
        assert not (evil / "mark").exists(), command


@pytest.mark.parametrize("option", OPTIONS)
def test_commands_that_would_run_a_file_say_so(option, theirs, evil, here, tmp_path):
    poison(theirs, evil, option)
    save(picture(0), tmp_path / "photo.png")
    commands = [["resume", theirs], ["resume", theirs, "--seeds", 3], ["resume", theirs / "droptop"]]
    commands += [["compare", "--config", theirs / "config.toml", "--out", tmp_path / "new"]]
    commands += [["run", "--config", theirs / "droptop/config.toml", "--out", tmp_path / "new"]]
    if option not in ("data", "log", "module"):  # no command that only predicts needs these
        commands += [["predict", theirs, tmp_path / "photo.png"], ["predict", theirs / "droptop/seed-0", tmp_path]]
        commands += [["export", theirs, "--format", "safetensors"]]
        with pytest.raises(BadRequest, match=r"then trust=True runs"):
            droptop.load_learner(theirs)
    before = {path: path.read_bytes() for path in theirs.rglob("*") if path.is_file()}
    for words in commands:
        done = here(*words)
        refused(done, evil, option)
        assert "which is not among the files that you have named: read it, then " in done.stderr
        assert "--trust" in done.stderr
    with pytest.raises(BadRequest, match=r"then trust=True runs"):
        droptop.resume(theirs)
    assert not (evil / "mark").exists()
    assert {path: path.read_bytes() for path in theirs.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "new").exists()
    assert known().files == set()
    done = here("resume", theirs, "--seeds", 3, "--trust")  # it does what it says
    assert done.returncode == 2
    assert set((evil / "mark").read_text().split(option)) == {""}


def test_to_predict_takes_neither_a_stream_nor_a_tracker(theirs, evil, here, tmp_path):
    save(picture(0), tmp_path / "photo.png")
    before = here("predict", theirs, tmp_path / "photo.png", "--json")
    poison(theirs, evil, "data", "module")
    done = here("predict", theirs, tmp_path / "photo.png", "--json")
    assert done.returncode == 0, done.stderr
    assert not (evil / "mark").exists()
    assert before.stdout.count("\n") == done.stdout.count("\n") == 1


@pytest.mark.parametrize("option", OPTIONS)
def test_a_study_that_would_run_a_file_says_so(option, swept_copy, evil, here, tmp_path):
    name, value = "log" if option == "module" else option, value_of(evil, option)
    for file in (swept_copy / "study.toml", write_study(tmp_path / "other.toml", **{name: value})):
        file.write_text(with_option(file.read_text(), name, value))
    for words in (["--out", swept_copy], [tmp_path / "other.toml", "--out", tmp_path / "new"]):
        done = here("sweep", *words)
        refused(done, evil, option)
        assert f"then `droptop sweep {' '.join(map(str, words))} --trust` runs it" in done.stderr
    assert not (tmp_path / "new").exists()
    cues = swept_copy / "study.toml"
    cues.write_text('shortcut = ["frame"]\n' + cues.read_text())
    refused(here("stress", "--out", swept_copy), evil, option)
    refused(here("stress", "--out", swept_copy, "--seeds", 3), evil, option)


def test_a_file_that_hides_in_a_cell_is_not_run(swept_copy, evil, here):
    """study.toml names none, but a sweep reads the config.toml of every cell."""
    for config in swept_copy.glob("runs/*/config.toml"):
        config.write_text(with_option(config.read_text(), "method", value_of(evil, "method")))
    for trust in ([], ["--trust"]):  # nobody was shown it
        refused(here("sweep", "--out", swept_copy, *trust), evil, "method")


def test_a_recipe_goes_on_with_nobody_elses_file(evil, here, tmp_path):
    out = tmp_path / "recipe"
    out.mkdir()
    for asked in ({"data": value_of(evil, "data")}, {"set": f"log={value_of(evil, 'module')}"}):
        option = "data" if "data" in asked else "module"
        (out / "paper.json").write_text(json.dumps({"table1": {"asked": asked | {"quick": True}, "runs": []}}))
        done = here("paper", "table1", "--out", out)
        refused(done, evil, option)
        assert f"`droptop paper table1 --out {out} --trust` runs it" in done.stderr
        assert here("paper", "table1", "--out", out, "--no-run").returncode == 2
        assert not (evil / "mark").exists()


def test_all_that_trust_would_run_is_named_before(theirs, evil, here):
    """Who reads the one file that is named must not run another by that."""
    poison(theirs, evil, *OPTIONS)
    gone = evil / "evil_debias.py"
    data = gone.read_bytes()
    gone.unlink()
    done = here("resume", theirs)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    names = [str(evil / f"evil_{option}.py") for option in OPTIONS if option not in ("debias", "log")]
    for name in (*names, f"{theirs / 'files/evil_debias.py'} (SHA-256 {sha256(data).hexdigest()[:12]})"):
        assert name in done.stderr
    assert "read them, then" in done.stderr


def test_what_is_typed_is_the_users_from_then_on(evil, here, tmp_path):
    """Although it fails: it was imported because the user said so. A neighbour was not named."""
    done = here("run", "--method", evil / "evil_method.py", "--out", tmp_path / "new")
    assert "RuntimeError" in done.stderr
    assert (evil / "mark").read_text() == "method"
    assert {file.path for file in known().files} == {str(evil / "evil_method.py")}
    done = here("run", "--data", "fashion-sticker", "--log", "evil_module:Evil", "--out", tmp_path / "new")
    assert (evil / "mark").read_text() == "methodmodule"
    assert {file.path for file in known().files} == {str(evil / f"evil_{name}.py") for name in ("method", "module")}
    before = (evil / "mark").read_text()
    assert here("data", "check", evil / "evil_data.py").returncode == 2
    assert (evil / "mark").read_text() == before + "data"


def test_processes_that_work_for_a_command_may_run_what_it_may(tmp_path):
    """They are handed a configuration by pickle, on other machines too, and have no list."""
    mine = tmp_path / "mine.py"
    mine.write_text("from droptop.methods import ER\n\n\nclass Mine(ER):\n    pass\n")
    sent, options = configure("fashion", str(mine)), flatten(configure("fashion", str(mine)))
    pickled = pickle.dumps(sent)
    sys.modules.pop(find(str(mine)).__module__)
    trusted_files._admitted.clear()
    with pytest.raises(Untrusted, match="--method would run"):
        config_from_options(options)
    mine.write_text(mine.read_text() + "# not what was sent\n")
    with pytest.raises(Untrusted, match="--method would run"):
        pickle.loads(pickled)
    mine.write_text(mine.read_text().replace("# not what was sent\n", ""))
    assert pickle.loads(pickled).options == sent.options


# -- Data -------------------------------------------------------------------------------------------------------------


def placed(run, name, value):
    """Let a run folder name a place of data."""
    for file in (run / "config.toml", *run.glob("*/config.toml")):
        file.write_text(with_option(file.read_text(), name, value))


def notes_of(run, without=()):
    """Return what is noted before a run is gone on with, or loaded."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with trusted(run, False, "again", without):
            pass
    return [str(note.message) for note in told]


@pytest.mark.parametrize(
    ("option", "value"),
    [("root", "{}/root"), ("weights", "{}/vit.safetensors"), ("data", "folder:{}/images"), ("data", "hf:some/where")],
)
def test_data_outside_of_a_folder_are_noted_once(option, value, theirs, tmp_path):
    place = value.format(tmp_path)
    placed(theirs, option, place)
    if option != "weights":
        assert notes_of(theirs, without=("data", "log")) == []  # to predict, only weights are read
    assert notes_of(theirs) == [f"{theirs} reads {place}, which you have not named here before"]
    assert notes_of(theirs) == []
    assert known().places == {place}


def test_data_inside_of_a_folder_are_not_noted(theirs, tmp_path):
    placed(theirs, "root", str(theirs / "images"))
    assert notes_of(theirs) == []
    (tmp_path / "secret").mkdir()
    (theirs / "images").symlink_to(tmp_path / "secret")
    assert len(notes_of(theirs)) == 1


def test_the_command_says_it_as_a_note(theirs, here, tmp_path):
    placed(theirs, "weights", str(tmp_path / "vit.safetensors"))
    done = here("export", theirs, "--format", "safetensors")
    said = f"note: {theirs} reads {tmp_path / 'vit.safetensors'}, which you have not named here before\n"
    assert done.returncode == 0
    assert done.stderr.startswith(said)


def test_a_run_that_the_user_began_is_never_noted(tmp_path):
    options = {"limit": 32, "width": 4, "root": tmp_path / "root"}
    (tmp_path / "root").mkdir()
    begin(plan(configure("fashion", "finetune", "none", **options)), tmp_path / "out")
    assert known().places == {str(tmp_path / "root")}
    assert notes_of(tmp_path / "out") == []
