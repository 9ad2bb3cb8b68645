"""`droptop compare --against`: the reference is what it names, in the folder, the numbers and the words."""

import json
import tomllib

import pytest

from droptop.runs.folder import read_request
from droptop.runs.noted import recorded_flags

FEW = ["--limit", "64", "--width", "4", "--memory", "40", "--seeds", "2", "--tasks", "2", "--maps", "0"]


def test_two_methods_are_compared_and_the_folder_says_how(here, tmp_path):
    out = tmp_path / "out"
    done = here("compare", "--data", "fashion", "--method", "er-ace", "--against", "er", *FEW, "--out", out)
    assert done.returncode == 0, done.stderr
    result = json.loads((out / "compare.json").read_text())
    assert list(result["arms"]) == ["er", "er-ace"]
    assert {name: (arm["method"], arm["debias"]) for name, arm in result["arms"].items()} == {
        "er": ("er", "none"),
        "er-ace": ("er-ace", "none"),
    }
    for name, arm in result["arms"].items():
        assert arm == json.loads((out / name / "summary.json").read_text())
        assert tomllib.loads((out / name / "config.toml").read_text())["method"] == name
    for test, figures in result["effects"]["er-ace"].items():
        for figure, effect in figures.items():
            before, after = (arm["tests"][test][figure] for arm in result["arms"].values())
            assert effect["diff"] == pytest.approx(sum(b - a for a, b in zip(before, after)) / 2)
    assert tomllib.loads((out / "config.toml").read_text())["against"] == "er"
    assert [arm.name for arm in read_request(out).arms] == ["er", "er-ace"]
    flags = recorded_flags(out)
    assert flags[flags.index("--against") + 1] == "method=er,debias=none"
    kept = {path: path.read_bytes() for path in out.rglob("*.json")}
    again = here("resume", out)
    assert again.returncode == 0, again.stderr
    assert "nothing to resume" in again.stdout
    assert {path: path.read_bytes() for path in out.rglob("*.json")} == kept


@pytest.mark.parametrize(("against", "says"), [("err", "did you mean er?"), ("lrr=0.1", "did you mean --lr?")])
def test_a_reference_that_is_none_is_refused_before_anything_is_written(against, says, here, tmp_path):
    out = tmp_path / "out"
    done = here("compare", "--data", "fashion", "--against", against, "--out", out)
    assert (done.returncode, len(done.stderr.splitlines()), out.exists()) == (2, 1, False)
    assert says in done.stderr
