"""A run folder read back, by hand-made files and without torch."""

import json
import subprocess
import sys

import pytest

from droptop import BadRequest
from droptop.options import BESIDE, YOUNGER
from droptop.runs.config import configure
from droptop.runs.folder import (
    RunFolder,
    is_done,
    read_metrics,
    read_request,
    seed_folder,
    step_count,
    whole_lines,
    whole_result,
)
from droptop.runs.noted import environments

from plans import plan

CLEAN = {"clean": {"all": {"n": [4, 4], "correct": [3, 2]}}}
LINES = [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25, "task_end": True, "eval": CLEAN}]


def write_request(out, command="run", **options):
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.toml").write_text(plan(configure("fashion", **options), command).toml())
    return out


def write_lines(run, text):
    seed_folder(run, 0).mkdir(parents=True)
    (seed_folder(run, 0) / "metrics.jsonl").write_bytes(text)


def test_a_run_has_one_arm_and_a_comparison_two(tmp_path):
    run = read_request(write_request(tmp_path / "run", seeds=3, first_seed=2, gamma=2.5))
    [arm] = run.arms
    assert (run.command, arm.path, arm.debias, [*arm.seeds]) == ("run", tmp_path / "run", "droptop", [2, 3, 4])
    assert (arm.data, arm.method, arm.adapts, arm.per_class) == ("fashion", "er", True, True)
    assert (arm.gamma, arm.start) == (2.5, 2.5)  # kappa_0 of 5 does not go beyond gamma
    both = read_request(write_request(tmp_path / "both", "compare", debias="fixed"))
    plain, debiased = both.arms
    assert (plain.path, debiased.path) == (tmp_path / "both/none", tmp_path / "both/fixed")
    assert (plain.debias, debiased.debias) == ("none", "fixed")
    assert not any(path.startswith("droptop.") for path in plain.options)
    assert not plain.adapts
    assert not debiased.adapts  # which drops as much as it may from the beginning


@pytest.mark.parametrize("command", ["run", "compare"])
def test_arms_have_the_options_that_their_configurations_have(tmp_path, command):
    """What is read without a learner is what the learners' own code says."""
    asked = plan(configure("fashion", limit=64), command)
    (tmp_path / "config.toml").write_text(asked.toml())
    assert [arm.options for arm in read_request(tmp_path).arms] == [arm.noted() for arm in asked.arms.values()]


def test_options_that_older_runs_lack_are_filled_in(tmp_path):
    of_all = {path for path, value in YOUNGER.items() if value is not None} - BESIDE.keys()
    for method, debias, own in (
        ("er", "droptop", {path for path in YOUNGER if path.startswith("droptop.")}),
        ("er", "none", set()),
        ("aser", "none", {"learner.sampling"}),
        ("l2p", "none", {"learner.renew_optimizer"}),
    ):
        out = write_request(tmp_path / f"{method}-{debias}", method=method, debias=debias)
        lines = (out / "config.toml").read_text().splitlines(keepends=True)
        names = tuple(f"{path.rpartition('.')[2]} = " for path in YOUNGER)
        (out / "config.toml").write_text("".join(line for line in lines if not line.startswith(names)))
        [arm] = read_request(out).arms
        assert arm.options == configure("fashion", method, debias).noted()
        assert {path for path in arm.options if path in YOUNGER} == of_all | own
    out = write_request(tmp_path / "held", hold_out=20.0)
    assert read_request(out).arms[0].options["stream.hold_out"] == 20.0


def test_a_method_that_is_a_file_goes_by_its_name(tmp_path):
    assert RunFolder(tmp_path, {"method": "/home/me/mine.py"}).method == "mine.py"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "is not a run folder: it has no config.toml"),
        ('data = "fashion"', "says neither run nor compare"),
        ('command = "sweep"', "says neither run nor compare"),
        ('command = "run"\ndata = "fashion"\nmethod = 3', "does not say which method it is of"),
        (
            'command = "run"\ndata = "fashion"\nmethod = "er"\ndebias = "none"\ndevice = 5',
            "takes a text for device, not 5",
        ),
        ("command = ", "is not TOML"),
    ],
)
def test_folders_that_are_no_runs_are_refused(tmp_path, text, says):
    if text is not None:
        (tmp_path / "config.toml").write_text(text)
    with pytest.raises(BadRequest, match=says):
        read_request(tmp_path)


def test_other_paths_are_refused_with_a_reason(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "study.toml").touch()
    for place, says in (
        (tmp_path, f"is a study: `droptop sweep --out {tmp_path}` continues it"),
        (tmp_path / "file", "is not a run folder: it is a file"),
        (tmp_path / "nowhere", "is not a run folder: it is not there"),
    ):
        with pytest.raises(BadRequest, match=says):
            read_request(place)


# -- One seed ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [b"", b'{"step": 3', b"\xff\xfe", b'{"step": 3, "lo\n'])
def test_whole_lines_end_before_one_that_is_half_written(tmp_path, left):
    write_lines(tmp_path, "".join(json.dumps(line) + "\n" for line in LINES).encode() + left)
    assert whole_lines(tmp_path, 0) == LINES
    assert step_count(tmp_path, 0) == 2 + left.count(b"\n")
    if left:
        with pytest.raises(BadRequest, match=r"metrics\.jsonl is damaged in line [13]: "):
            read_metrics(tmp_path, 0)
    else:
        assert read_metrics(tmp_path, 0, tasks=1) == LINES


def test_missing_or_short_metrics_are_refused(tmp_path):
    assert whole_lines(tmp_path, 0) == []
    assert step_count(tmp_path, 0) == 0
    with pytest.raises(BadRequest, match=r"metrics\.jsonl is not there"):
        read_metrics(tmp_path, 0)
    write_lines(tmp_path, "".join(json.dumps(line) + "\n" for line in LINES).encode())
    with pytest.raises(BadRequest, match="has the ends of 1 tasks, not of 2"):
        read_metrics(tmp_path, 0, tasks=2)


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", '{"tests": {}}', '{"tests": {"clean": 1}}'])
def test_is_done_removes_a_damaged_result_and_whole_result_does_not(tmp_path, damage):
    path = seed_folder(tmp_path, 0) / "result.json"
    path.parent.mkdir()
    path.write_text(damage)
    assert whole_result(tmp_path, 0) is None
    assert path.exists()
    assert not is_done(tmp_path, 0)
    assert not path.exists()
    assert not is_done(tmp_path, 0)
    path.write_text('{"tests": {"clean": {"A_avg": 1.0}}}')
    assert is_done(tmp_path, 0)
    assert whole_result(tmp_path, 0)["tests"]["clean"]["A_avg"] == 1.0


def test_a_summary_has_a_value_per_seed(tmp_path):
    def result(seed, **more):
        return {"tests": {"clean": {"A_avg": 50.0 + seed, "F_last": None}}} | more

    options = {"data": "fashion", "method": "er", "debias": "droptop", "droptop.drop": "adaptive"}
    run = RunFolder(tmp_path, options | {"first_seed": 3, "seeds": 2})
    dropped = {"dropped": {"share": 20.0, "chance": 10.0}}
    summary = run.summary_of({3: result(3, **dropped), 4: result(4, **dropped, kappa={"0": 4.5})})
    assert summary == {
        "data": "fashion",
        "method": "er",
        "debias": "droptop",
        "seeds": [3, 4],
        "tests": {"clean": {"A_avg": [53.0, 54.0], "F_last": [None, None]}},
        "dropped": {"share": [20.0, 20.0], "chance": [10.0, 10.0]},
        "kappa": [{}, {"0": 4.5}],
    }
    assert "dropped" not in run.summary_of({3: result(3), 4: result(4, **dropped)})
    for seed in (3, 4):
        seed_folder(tmp_path, seed).mkdir()
        (seed_folder(tmp_path, seed) / "result.json").write_text(json.dumps(result(seed)))
    assert run.summary()["tests"]["clean"]["A_avg"] == [53.0, 54.0]
    assert run.summary([4])["seeds"] == [4]


def test_environments_are_the_first_one_and_each_change(tmp_path):
    assert environments(tmp_path) == []
    path = tmp_path / "environment.json"
    path.write_text(json.dumps({"commit": "a", "python": "3", "later": [{"commit": "b"}, {"python": "4"}]}))
    assert environments(tmp_path) == [
        {"commit": "a", "python": "3"},
        {"commit": "b", "python": "3"},
        {"commit": "a", "python": "4"},
    ]
    for damage in ("", "[]", '{"later": 3}'):
        path.write_text(damage)
        assert environments(tmp_path) == []


def test_reading_a_run_folder_loads_no_torch():
    code = (
        "import sys, droptop.runs.folder, droptop.runs.records, droptop.cli.status, droptop.cli.results\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
