"""`droptop tune` and `droptop compare --tune`: the real command on a tiny stream, and what is refused in one line."""

import json
import shutil

import pytest
import torch

import droptop as package
from droptop import Samples, Stream, StreamConfig, api
from droptop.cli import main
from droptop.cli.tune import asked
from droptop.errors import BadRequest
from droptop.runs.folder import read_request, read_result
from droptop.sweeps.tuning import arms
from droptop.system.sealed_json import write_sealed
from droptop.types import Spec

from plans import parsed
from tunings import Trained, read

SMALL = ["--limit", "64", "--width", "4", "--memory", "20", "--tasks", "2"]
FEW = ["--trials", "2", "--confirm", "1", "--confirm-seeds", "1", "--at-once", "1"]
TUNE = ["--data", "fashion", "--method", "er", "--debias", "none", *SMALL, *FEW]


def test_it_tunes_confirms_and_says_how_sure_it_is(tuned, here):
    out, said = tuned
    found = read(out)
    assert [trial["state"] for trial in found["trials"]] == ["done", "done"]
    for trial in found["trials"]:  # a trial reached what its run folder has, on held-out images
        tests = read_result(out / f"runs/trial-{trial['number']}", 10_000)["tests"]
        assert list(tests) == ["held-out"]
        assert trial["value"] == pytest.approx(tests["held-out"]["A_avg"])
        assert trial["steps"][-1] == pytest.approx(trial["value"])
    for each in found["confirmed"]:
        reached = read_result(out / "runs" / each["name"], 10_001)["tests"]["held-out"]["A_avg"]
        assert each["values"] == [reached]
    assert "The choice is lr " in said
    assert "the test sets were not looked at" in said
    assert f"`droptop run --config {out}/best.toml --out FOLDER` runs the choice" in said
    config = parsed("--config", str(out / "best.toml"))
    assert (config.learner.lr, config.learner.momentum) == tuple(found["chosen"]["settings"].values())
    assert (config.stream.hold_out, config.options.limit, config.options.first_seed) == (0.0, 64, 0)
    status = here("status", out).stdout
    assert status.startswith(f"{out}: The choice is lr ")
    assert f"is a tuning: `droptop tune --out {out}` continues it" in here("resume", out).stderr


def test_what_is_altered_in_it_is_told(tuned, tmp_path, here):
    copy = shutil.copytree(tuned[0], tmp_path / "copy")
    assert here("verify", copy).returncode == 0
    found, bytes_ = read(copy), (copy / "tune.json").read_bytes()
    better = found | {"trials": [found["trials"][0] | {"value": 99.0}, *found["trials"][1:]]}
    (copy / "tune.json").write_text(json.dumps(better))
    assert f"{copy}/tune.json is damaged" in here("verify", copy).stdout
    for looking in ("status", "report"):
        assert f"{copy}/tune.json is damaged: `droptop tune --out {copy}` writes it anew" in here(looking, copy).stderr
    write_sealed(copy / "tune.json", {name: value for name, value in better.items() if name != "seal"})
    verified = here("verify", copy)
    assert verified.returncode == 1
    assert f"{copy}/tune.json: trial 0 reached {found['trials'][0]['value']:.2f}, not 99.00" in verified.stdout
    (copy / "tune.json").unlink()
    assert f"{copy}/tune.json is gone" in here("verify", copy).stdout
    assert here("tune", "--out", copy).returncode == 0  # which makes it anew
    assert (copy / "tune.json").read_bytes() == bytes_
    assert f"--recompute takes a run, a comparison or a study; {copy} is a tuning" in (
        here("verify", copy, "--recompute").stderr
    )


@pytest.mark.parametrize("name", ["tune.toml", "best.toml"])
def test_edited_options_of_it_are_told(tuned, tmp_path, here, name):
    copy = shutil.copytree(tuned[0], tmp_path / "copy")
    file = copy / name
    file.write_text(file.read_text().replace("width = 4", "width = 8"))
    line = f"{file} has changed since droptop wrote it"
    assert line in here("verify", copy).stdout
    assert line in here("status", copy).stderr
    assert line in here("report", copy).stderr
    if name == "tune.toml":
        done = here("tune", "--out", copy)
        assert (done.returncode, done.stderr) == (2, f"droptop: {line}: put it back, or tune in another folder\n")


def test_its_page_has_the_choice_and_every_trial(tuned):
    pytest.importorskip("altair")
    from droptop.cli.report import command
    from droptop.report.page.render import describe, render

    out, _ = tuned
    assert (out / "report.html").stat().st_size > 1000
    page = describe(out, command(out))
    assert (page.kind, page.title, page.progress) == ("tuning", "er on fashion", "")
    assert page.headline.startswith("The choice is lr ")
    assert [table.title for table in page.tables] == ["Confirmed", "All trials"]
    assert len(page.tables[1].rows) == 2
    ranked = sorted(read(out)["confirmed"], key=lambda each: -each["mean"])
    assert [row[1:] for row in page.answer.rows] == [[10_001, each["mean"]] for each in ranked]
    assert page.command.startswith("droptop tune --data fashion --method er --debias none")
    again, options = asked(page.command.split()[2:])
    assert again.goes_on(asked(["--out", str(out)])[0])
    assert str(options.out) == f"{out}-again"
    assert "All trials" in render(page)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--over", "lrr=0.1,0.2"], "unknown option lrr"),
        (["--over", "lr=log:1:0.1"], "two numbers of which the second is larger"),
        (["--over", "momentum=lin:0:1"], "--momentum takes a number from 0 and below 1, not 1"),
        (["--over", "width=int:0:4"], "--width takes"),
        (["--trials", "0"], "--trials takes a number of trials from 1, not 0"),
        (["--trials", "many"], "--trials takes an integer"),
        (["--by", "luck"], "--by takes"),
        (["--confirm", "0"], "--confirm takes a number of trials from 1"),
        (["--at-once", "0"], "--at-once takes a number of trials from 1"),
        (["--hold-out", "100"], "--hold-out takes a percentage"),
        (["--tune-seed", "0"], "--tune-seed takes seeds other than those of the run"),
        (["--engine", "submitit"], "--engine takes"),
        (["--widht", "4"], "did you mean --width"),
        (["--debias", "droptop,robust"], "`droptop compare` takes several arms"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(args, says, tmp_path, here):
    done = here("tune", *TUNE, *args, "--out", tmp_path / "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "x").exists()


def test_folders_that_hold_something_else_are_refused(tmp_path, here):
    (tmp_path / "mine.txt").touch()
    for place, says in ((tmp_path, "holds something else"), (tmp_path / "mine.txt", "is a file")):
        assert says in here("tune", *TUNE, "--out", place).stderr
    assert "--over takes a value" in here("tune", *TUNE, "--out", tmp_path / "x", "--over").stderr
    assert "is no folder of `droptop tune`" in here("tune", "--out", tmp_path / "nowhere").stderr


def test_help_tells_how_to_ask(capsys):
    assert main(["tune", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(flag in said for flag in ("--out", "--over", "--trials", "--by", "--confirm", "--at-once", "--engine"))


# -- Images that nothing may look at ----------------------------------------------------------------------------------


class Poison:
    """A test set that may be built, and then never looked at."""

    def __init__(self, samples):
        self.samples, self.armed = samples, False

    @property
    def y(self):
        assert not self.armed, "somebody looked at the labels of a test set"
        return self.samples.y

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, rows):
        assert not self.armed, "somebody looked at a test set"
        return self.samples[rows]


def four():
    """A stream of four colours in two tasks."""
    return poisoned(armed=False)


def poisoned(armed=True):
    """The same, whose test set raises when it is read."""
    random = torch.Generator().manual_seed(0)
    y = torch.arange(4).repeat_interleave(64)
    x = torch.randint(0, 60, (256, 3, 16, 16), generator=random) + 45 * y[:, None, None, None]
    images = Samples(x.to(torch.uint8), y)
    poison = Poison(images[torch.arange(0, 256, 4)])
    stream = Stream(
        "four", Spec((3, 16, 16), tuple("abcd")), images, {"test": poison}, StreamConfig(tasks=2, batch=16), 0
    )
    poison.armed = armed
    return stream


NET = {"width": 4, "stem": "3x3", "memory": 20, "memory_batch": 8, "augment": "none"}


@pytest.mark.parametrize("by", ["hold-out", "first-task"])
def test_a_tuning_never_reads_a_test_set(tmp_path, by):
    over = {"lr": [0.01, 0.05], "momentum": [0.0, 0.9]}
    found = package.tune(
        poisoned(), "er", None, over=over, trials=2, by=by, confirm=1, confirm_seeds=1, out=tmp_path / "out", **NET
    )
    assert [trial["state"] for trial in found["trials"]] == ["done", "done"]
    for path in (tmp_path / "out").rglob("result.json"):
        assert list(json.loads(path.read_text())["tests"]) == ["held-out"]
    assert "on fresh seeds" in repr(found)
    with pytest.raises(AssertionError, match="looked at"):
        package.run(poisoned(), "er", None, seeds=1, out=tmp_path / "run", **NET)  # as the poison would show


# -- compare --tune ---------------------------------------------------------------------------------------------------


def test_a_comparison_tunes_its_arms_and_says_so(tmp_path, monkeypatch, here, capsys):
    few = arms.Search
    monkeypatch.setattr(arms, "Search", lambda **given: few(**({"confirm": 1, "confirm_seeds": 1} | given)))
    killed = Trained(lambda config, seed: 50 - 100 * abs(config.learner.lr - 0.2), stop_after=1)
    monkeypatch.setattr(api, "local", killed)
    out, given = tmp_path / "out", {"seeds": 1, "maps": 0, "limit": 64} | NET
    with pytest.raises(KeyboardInterrupt) as stopped:
        package.compare(four(), "er", "average", tune=2, over={"lr": [0.05, 0.2]}, out=out, **given)
    assert stopped.value.__notes__ == [f"`droptop resume {out}` continues"]
    assert "none: 1 trial: 1 came to the end; the best so far: lr 0.05 (35.0%)" in here("status", out).stdout
    with pytest.raises(BadRequest, match="holds something already: `droptop resume"):
        package.compare(four(), "er", "average", out=out, **given)
    killed.stop_after = None
    comparison = package.resume(out, data=four())
    shown = " ".join(repr(comparison).split())
    assert "each arm tuned by 2 trials on held-out training images" in shown
    assert "every arm was tuned alike: 2 trials over lr 0.05,0.2, on 10% of the training images, held out" in shown
    assert "tuned average: lr 0.2" in shown
    tuning = read(out, "compare.json")["tuning"]
    settings = {"learner.lr": 0.2}
    assert {arm: of["settings"] for arm, of in tuning["arms"].items()} == {"none": settings, "average": settings}
    for arm in read_request(out).arms:
        assert arm.options["learner.lr"] == 0.2
        assert read_result(arm.path, 0)["tests"].keys() == {"test"}
    pytest.importorskip("altair")
    from droptop.report.page.render import describe

    page = describe(out, "again")
    assert [table.title for table in page.tables][-1] == "Tuned options"
    assert page.tables[-1].rows == [[arm, "lr 0.2", "lr 0.1", "50.0"] for arm in ("none", "average")]
    altered, sealed = out / "tuned.json", (out / "manifest.json").read_bytes()
    altered.write_text(altered.read_text().replace('"trials": 2', '"trials": 200'))
    capsys.readouterr()
    assert "tuning" not in package.resume(out, data=four())  # which would have sealed it
    assert f"{altered} is not what was written: how arms were tuned is left out" in capsys.readouterr().out
    assert (
        json.loads((out / "manifest.json").read_text())["files"]["tuned.json"]
        == (json.loads(sealed)["files"]["tuned.json"])
    )
    assert f"{altered} is not what was written" in here("verify", out).stdout


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--over", "lr=0.1,0.2"], "--over and --tune-for go with --tune N, a number of trials"),
        (["--tune-for", "none"], "--over and --tune-for go with --tune N, a number of trials"),
        (
            ["--tune", "2", "--over", "gamma=lin:1:5"],
            "unknown option gamma with --data fashion --method er --debias none",
        ),
        (["--tune", "2", "--tune-for", "robust"], "an arm to tune for all: none, droptop, not robust"),
        (["--tune", "2", "--hold-out", "5"], "leave out --hold-out"),
        (["--tune", "0"], "--tune takes a number of trials from 1"),
        (["--equal-cost", "--tune", "2", "--over", "iterations=1,2"], "--over takes options that leave costs as they"),
    ],
)
def test_what_cannot_be_tuned_is_refused(args, says, tmp_path, here):
    done = here("compare", "--data", "fashion", "--debias", "droptop", *SMALL, *args, "--out", tmp_path / "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "x").exists()
