"""Commands that only read a finished folder start without torch."""

import json
import shlex
import shutil
import subprocess
import sys

import pytest

from droptop.cli.report import command
from droptop.cli.run_flags import parse
from droptop.report.page.render import config_was_changed
from droptop.runs.flags import flags_of
from droptop.runs.noted import recorded_flags
from droptop.runs.requests import load

from toys import environment

LOADED = """
import sys
from droptop.cli import main
code = main(sys.argv[1:])
slow = ("torch", "droptop.learner", "droptop.methods", "matplotlib", "scipy", "numpy", "tyro")
print("loaded:", *(name for name in slow if name in sys.modules))
sys.exit(code)
"""
SLOWEST = {"torch", "droptop.learner", "droptop.methods", "matplotlib"}


def loaded_by(*words):
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *map(str, words)], capture_output=True, text=True, env=environment()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()[1:]


@pytest.fixture
def folder(comparison, tmp_path):
    """Return a copy of a comparison, to change."""
    return shutil.copytree(comparison[0], tmp_path / "edited")


def test_status_results_and_verify_load_no_torch(comparison, swept):
    for words in (["status", comparison[0]], ["status", swept]):
        assert loaded_by(*words) == ["numpy", "tyro"]
    for words in (["results", swept], ["verify", swept], ["verify", comparison[0]]):
        assert loaded_by(*words)[-2:] == ["numpy", "tyro"]
        assert not SLOWEST & set(loaded_by(*words))


def test_a_command_that_says_one_thing_loads_nothing_slow():
    for word in ("--help", "--version"):
        assert loaded_by(word) == []


def test_a_report_loads_no_torch(folder, swept_copy):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    for place in (folder, folder / "droptop", swept_copy, next((swept_copy / "runs").iterdir())):
        assert not SLOWEST & set(loaded_by("report", place))


def test_the_recorded_flags_are_those_of_the_configuration(comparison, swept):
    for place in (comparison[0], comparison[0] / "none", comparison[0] / "droptop", *(swept / "runs").iterdir()):
        asked = load(place)
        assert recorded_flags(place) == flags_of(asked)
        assert not config_was_changed(place)
        words = shlex.split(command(place))
        assert words[:2] == ["droptop", asked.command]
        assert parse(asked.command, words[2:]).plan.toml() == asked.toml()


def test_flags_of_another_file_or_version_are_not_used(folder):
    path, usual = folder / "environment.json", command(folder)
    record = json.loads(path.read_text())
    other_version = {"flags_hold_for": record["flags_hold_for"].replace("droptop 0", "droptop 9")}
    for change in (other_version, {"flags_hold_for": None}, {"flags": None}, {"flags": "--data 'no end"}):
        path.write_text(json.dumps(record | change))
        assert recorded_flags(folder) is None
        assert command(folder) == usual
    path.write_text(json.dumps({name: value for name, value in record.items() if name != "flags"}))  # an older folder
    assert (recorded_flags(folder), command(folder)) == (None, usual)
    path.write_text(json.dumps(record))
    assert recorded_flags(folder) is not None
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("lr = 0.05", "lr = 0.5"))
    assert recorded_flags(folder) is None
    assert "--lr 0.5" in command(folder)
    assert config_was_changed(folder)
