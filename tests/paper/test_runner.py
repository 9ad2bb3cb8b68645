"""The command: runs what is missing, goes on where it was, shows what is there. Cells are run in this process."""

import json
import os
import time
from dataclasses import replace

import pytest

from droptop.cli import main
from droptop.cli.paper import PaperOptions
from droptop.errors import BadRequest, Diverged
from droptop.paper import call_log, find, runner
from droptop.paper.measurements import Measurements
from droptop.sweeps.study_folder import requested_cells
from droptop.training.seed_run import SeedRun
from droptop.training.workers import Failure

SMALL = ("--quick", "--data", "fashion", "--limit", "32", "--set", "width=4,split=0/2")  # quicker still: two steps


class Engine:
    """Runs cells here, in their call, and may be told to stop or to fail."""

    def __init__(self):
        self.ran, self.stop_after, self.fails = [], None, False

    def __call__(self, packs, driver):
        for [job] in packs:
            if self.stop_after is not None and len(self.ran) == self.stop_after:
                raise KeyboardInterrupt
            self.ran.append((job.config.options.debias, job.seed))
            if self.fails and job.config.options.debias == "droptop":
                driver.retry([job], Failure(Diverged, "the loss is nan", "..."))
                continue
            (job.kind or SeedRun)(job.config, job.run, job.seed, lambda progress: None)()
            driver.done(job)


@pytest.fixture
def engine(monkeypatch):
    engine = Engine()
    monkeypatch.setattr(PaperOptions, "start", lambda options: engine)
    return engine


def paper(*args):
    return main(["paper", *map(str, args)])


def test_from_interruption_to_more_seeds(engine, tmp_path, capsys):
    out = tmp_path / "out"
    engine.stop_after = 2
    assert paper("table1", *SMALL, "--methods", "er", "--out", out) == 130
    said = capsys.readouterr()
    assert f"`droptop paper table1 --out {out}` continues" in said.err
    page = (out / "table1.md").read_text()
    assert "**Not complete**: 2 of 4 cells are not done" in page
    assert "| 1 |" in page  # n

    engine.stop_after = None
    assert paper("table1", "--out", out) == 0  # with what was asked before
    assert engine.ran == [("none", 0), ("droptop", 0), ("none", 1), ("droptop", 1)]
    page = (out / "table1.md").read_text()
    assert "Not complete" not in page
    command = "droptop paper table1 --methods er --data fashion --quick --limit 32 --set width=4,split=0/2 --out"
    assert f"    {command} {out}\n" in page
    assert "**A quick look**" in page
    assert "quoted)" not in page
    assert {path.name for path in out.glob("table1.*")} == {"table1.md", "table1.csv", "table1.tex"}

    before = {path: path.stat().st_mtime_ns for path in out.glob("runs/**/*") if path.is_file()}
    assert paper("table1", "--out", out) == 0  # finished: only shows
    assert {path: path.stat().st_mtime_ns for path in out.glob("runs/**/*") if path.is_file()} == before
    assert (out / "table1.md").read_text() == page

    assert paper("table1", "--seeds", "3", "--out", out) == 0
    assert engine.ran[4:] == [("none", 2), ("droptop", 2)]
    assert len(requested_cells(out)) == 6
    assert call_log.last_options(out, "table1")["seeds"] == 3

    assert paper("ablation", *SMALL, "--methods", "er", "--out", out) == 0  # another recipe: ER with DropTop is there
    assert len(engine.ran) == 6 + 6


def test_what_is_there_is_shown_without_running(engine, tmp_path, capsys, monkeypatch):
    """As of a folder from another machine: no GPU, no data."""
    out = tmp_path / "out"
    assert paper("table1", "--no-run", "--out", out) == 2
    assert capsys.readouterr().err == f"droptop: --no-run shows what is there; {out} has no finished cell of table1\n"
    assert not out.exists()
    engine.stop_after = 3
    assert paper("table1", *SMALL, "--methods", "er", "--out", out) == 130
    page, noted = (out / "table1.md").read_text(), (out / call_log.NAME).read_text()
    (out / "table1.md").unlink()
    monkeypatch.setattr(PaperOptions, "start", lambda options: pytest.fail("nothing is to be run"))
    assert paper("table1", "--no-run", "--out", out) == 0
    assert (out / "table1.md").read_text() == page
    assert (out / call_log.NAME).read_text() == noted
    assert len(engine.ran) == 3
    assert runner.call_for(find("table1"), tmp_path / "none", {}, run=False).scope.data == find("table1").data
    both = replace(find("table1"), quick_data=("fashion-sticker", "fashion"))
    call = runner.call_for(both, out, {"data": ""}, run=False)  # as if none had been named
    assert (call.scope.data, call.left_out) == (("fashion",), ("nothing of fashion-sticker is there",))


def test_measurements_without_cells_are_nothing_to_show(tmp_path, capsys):
    """As where somebody deleted the cells."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "features.json").write_text(json.dumps({"a": 1}))
    (out / call_log.NAME).write_text(json.dumps({"features": {"asked": {"data": "fashion"}, "runs": []}}))
    assert paper("features", "--no-run", "--out", out) == 2
    assert "has no finished cell of features" in capsys.readouterr().err


def test_a_quick_folder_need_not_stay_quick(tmp_path):
    out, recipe = tmp_path / "out", find("table1")
    options = PaperOptions(out=out, quick=True)
    before = runner.call_for(recipe, out, options.given(["--quick"]) | {"data": "fashion"})
    runner.record(before)
    assert runner.call_for(recipe, out, PaperOptions(out=out).given([])).scope.quick  # nothing said: as before
    call = runner.call_for(recipe, out, PaperOptions(out=out).given(["--no-quick"]))
    assert (call.scope.quick, call.scope.seeds, call.scope.data) == (False, 5, ("fashion",))
    assert call.command == f"droptop paper table1 --data fashion --out {out}"


def test_settings_may_hold_commas():
    assert runner.settings("split=0,1/2,3") == {"split": "0,1/2,3"}
    assert runner.settings("lr=0.03, colours=red,lime,split=0,1/2,3,augment=none,p-counter=task,") == {
        "lr": 0.03,
        "colours": "red,lime",
        "split": "0,1/2,3",
        "augment": "none",
        "p_counter": "task",
    }
    assert runner.settings("") == {}
    for wrong in ("lr", "=3", "lr="):
        with pytest.raises(BadRequest, match="--set takes options such as"):
            runner.settings(wrong)


def test_failures_are_told(engine, tmp_path, capsys):
    out = tmp_path / "out"
    engine.fails = True
    assert paper("table1", *SMALL, "--methods", "er", "--out", out) == 1
    assert f"2 cells failed or are not done; `droptop status {out}` says why" in capsys.readouterr().err
    assert "| ER | A_avg |" in (out / "table1.md").read_text()


def test_the_date_is_that_of_the_run(engine, tmp_path, monkeypatch):
    out = tmp_path / "out"
    monkeypatch.setattr(runner.time, "strftime", lambda *_: "2020-02-02")
    assert paper("table1", *SMALL, "--methods", "er", "--seeds", "1", "--out", out) == 0
    monkeypatch.undo()
    kept = json.loads((out / call_log.NAME).read_text())
    kept["table1"]["runs"].append({"date": "2020-02-03", "machine": "another machine"})  # as of a seed that was added
    (out / call_log.NAME).write_text(json.dumps(kept))
    assert paper("table1", "--out", out) == 0
    [line] = [line for line in (out / "table1.md").read_text().splitlines() if line.startswith("Run 2020-02-02")]
    assert line.startswith("Run 2020-02-02 to 2020-02-03 on ")
    assert line.endswith("; another machine.")
    assert line.count(";") == 1  # the first, once
    (out / call_log.NAME).unlink()  # as where `droptop sweep` ran the cells: by their files
    for result in out.glob("runs/*/seed-*/result.json"):
        os.utime(result, (0, time.mktime((2021, 3, 4, 12, 0, 0, 0, 0, -1))))
    assert paper("table1", *SMALL, "--methods", "er", "--seeds", "1", "--out", out) == 0
    assert "Run 2021-03-04 on " in (out / "table1.md").read_text()
    for path in out.glob("runs/*/environment.json"):  # as of a run that another commit went on with
        path.write_text(json.dumps(json.loads(path.read_text()) | {"later": [{"commit": "c0ffee5" + "0" * 33}]}))
    assert paper("table1", *SMALL, "--methods", "er", "--seeds", "1", "--out", out) == 0
    [line] = [line for line in (out / "table1.md").read_text().splitlines() if line.startswith("Run 2021-03-04")]
    assert line.endswith(" at c0ffee5.")
    assert line.count(";") == 1


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("table9",), "there is no recipe table9; there are table1"),
        (("table1",), "--out is missing"),
        (("table1", "--methods", "l2p"), "--methods takes some of er, derpp, mir, gss, aser with table1, not l2p"),
        (("table1", "--data", "split-cifar11"), "there is no stream split-cifar11"),
        (("table1", "--quick", "--set", "learning_rate=1"), "--set: unknown option learning_rate"),
        (("table1", "--quick", "--set", "lr"), "--set takes options such as lr=0.03,width=20, not lr"),
        (("table1", "--quick", "--set", "lr=-1"), "--lr takes a learning rate above 0, not -1"),
        (("table1", "--seeds", "0"), "--seeds takes a number of seeds from 1, not 0"),
        (("table1", "--root", "/nowhere"), "--root takes an existing folder, not /nowhere"),
        (("table1",), "CIFAR-100 is not on this disk"),
        (("table2", "--data", "fashion"), "a ViT takes pretrained weights"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(args, says, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DROPTOP_DATA", str(tmp_path))
    out = tmp_path / "out"
    code = paper(*args) if says == "--out is missing" else paper(*args, "--out", out)
    said = capsys.readouterr()
    assert code == 2
    assert says in said.err
    assert said.err.count("\n") == 1
    assert not out.exists()


def test_a_folder_of_something_else_is_refused(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("")
    assert paper("table1", "--quick", "--out", tmp_path) == 2
    assert "holds something else" in capsys.readouterr().err


def test_streams_that_are_not_there_are_left_out(tmp_path):
    recipe = replace(find("table1"), data=("split-cifar10", "fashion", "split-imagenet9"))
    call = runner.call_for(recipe, tmp_path / "out", {"root": str(tmp_path)})
    assert call.scope.data == ("fashion",)
    assert [why.partition(" is not on this disk")[0] for why in call.left_out] == ["CIFAR-10", "split-imagenet9"]
    with pytest.raises(BadRequest, match="CIFAR-10 is not on this disk"):
        runner.call_for(replace(recipe, data=("split-cifar10",)), tmp_path / "out", {"root": str(tmp_path)})


def test_list(tmp_path, capsys):
    assert paper("list", "--root", tmp_path) == 0
    said = capsys.readouterr().out
    names = [
        "table1",
        "table2",
        "table-f",
        "ablation",
        "ablation-unbiased",
        "design",
        "validity",
        "sensitivity",
        "readings",
    ]
    lines = {line.split()[0]: line for line in said.splitlines()}
    assert lines.keys() >= set(names)
    assert "split-cifar10 (not on this disk)" in lines["table1"]
    assert "--weights of a ViT" in lines["table2"]


def test_a_value_is_measured_once(tmp_path):
    calls = []
    for _ in range(2):
        measurements = Measurements(tmp_path / "overhead.json")
        assert measurements.once("er", lambda: calls.append(1) or {"ms": 3.5}) == {"ms": 3.5}
    assert calls == [1]
    assert dict(measurements) == json.loads((tmp_path / "overhead.json").read_text()) == {"er": {"ms": 3.5}}
