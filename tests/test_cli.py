"""The real command, as a person types it."""

import errno
import importlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
import warnings
from functools import partial

import matplotlib.pyplot as plt
import pytest
import torch
from PIL import Image

from droptop.cli import main
from droptop.cli.main import COMMANDS, USAGE
from droptop.config import configure
from droptop.engine import run as engine_run
from droptop.engine.build import build_learner, build_stream
from droptop.engine.run import begin, load, note_environment
from droptop.engine.trained import find_place, restore
from droptop.errors import BadRequest
from droptop.report.figures import shortcut_shares
from droptop.results.folder import environments, locked

from toys import command, droptop, environment

SHORT = ["--limit", "64", "--width", "4", "--memory", "40", "--seeds", "2", "--period", "1", "--history", "2",
         "--significance", "0.49", "--kappa-0", "2"]


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    out = tmp_path_factory.mktemp("compare") / "first"
    done = droptop("compare", "--data", "fashion-sticker", "--method", "er", "--debias", "droptop", *SHORT,
                   "--out", out)
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def test_compare_writes_what_it_promises(comparison):
    out, _ = comparison
    arms = ["none", "droptop"]
    result = json.loads((out / "compare.json").read_text())
    assert list(result["arms"]) == arms
    for arm in arms:
        summary = json.loads((out / arm / "summary.json").read_text())
        assert summary == result["arms"][arm]
        assert (summary["data"], summary["method"], summary["debias"]) == ("fashion-sticker", "er", arm)
        assert summary["seeds"] == [0, 1]
        for test in ("biased", "removed", "random"):
            figures = summary["tests"][test]
            assert all(len(figures[name]) == 2 for name in ("A_avg", "A_last", "F_last", "matrix"))
            matrix = figures["matrix"][0]
            assert [[value is None for value in row] for row in matrix] == [[j > i for j in range(5)] for i in range(5)]
            assert all(0 <= value <= 100 for row in matrix for value in row if value is not None)
            assert ("contradict" in figures) == (test != "removed")
            effect = result["effects"][test]["A_avg"]
            assert effect["diff"] == pytest.approx(
                sum(b - a for a, b in zip(result["arms"]["none"]["tests"][test]["A_avg"],
                                          result["arms"]["droptop"]["tests"][test]["A_avg"])) / 2)
            assert effect["ci95"][0] <= effect["diff"] <= effect["ci95"][1]
        assert tomllib.loads((out / arm / "config.toml").read_text())["debias"] == arm
        assert json.loads((out / arm / "environment.json").read_text())["threads"] == 1
        for seed in (0, 1):
            lines = [json.loads(line) for line in (out / arm / f"seed-{seed}/metrics.jsonl").read_text().splitlines()]
            assert [line["step"] for line in lines] == list(range(1, 11))
            assert [line["task"] for line in lines] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
            assert all(isinstance(line["loss"], float) for line in lines)
            assert any("kappa" in line for line in lines) == (arm == "droptop")
            assert all(("dropped" in line) == (arm == "droptop") for line in lines)
    for picture in ("figures/accuracy", "figures/matrix", "figures/attention", "droptop/figures/kappa",
                    "droptop/figures/shortcut", "none/figures/accuracy"):
        with Image.open(out / f"{picture}.png") as image:
            assert min(image.size) > 200


def test_compare_says_what_it_found(comparison):
    out, printed = comparison
    for word in ("A_avg", "A_last", "F_last", "95% interval", "contradict it", "worst group", "no significant"):
        assert word in printed
    assert "none seed 1: done" in printed
    assert str(out) in printed
    assert "\x1b" not in printed  # plain lines where there is no terminal


def test_both_arms_start_alike():
    config = configure(width=4)
    arms = [config.arm("none"), config]
    streams = [build_stream(arm, 3) for arm in arms]
    learners = [build_learner(arm, stream, 3) for arm, stream in zip(arms, streams)]
    assert torch.equal(streams[0].train.x, streams[1].train.x)
    assert all(torch.equal(a, b) for a, b in zip(streams[0].order, streams[1].order))
    states = [learner.state_dict() for learner in learners]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_runs_again_from_its_config(comparison, tmp_path):
    out, _ = comparison
    again = droptop("compare", "--config", out / "config.toml", "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again/compare.json").read_text() == (out / "compare.json").read_text()
    one = droptop("run", "--config", out / "droptop/config.toml", "--seeds", 1, "--first-seed", 1, "--out",
                  tmp_path / "one")
    assert one.returncode == 0, one.stderr
    name = "seed-1/metrics.jsonl"
    assert (tmp_path / "one" / name).read_bytes() == (out / "droptop" / name).read_bytes()


def test_resume_on_a_finished_run_says_so(comparison):
    out, _ = comparison
    before = (out / "compare.json").read_text()
    done = droptop("resume", out)
    assert done.returncode == 0
    assert "finished" in done.stdout
    assert (out / "compare.json").read_text() == before


@pytest.mark.parametrize("missing", ["none/summary.json", "environment.json", "figures"])
def test_a_finished_run_is_shown_wherever_it_lies(comparison, tmp_path, monkeypatch, capsys, missing):
    """Where nobody can write, that is; root can everywhere, so that writing is made to fail here."""
    out, opened = tmp_path / "out", open
    shutil.copytree(comparison[0], out, ignore=lambda place, names: [name for name in names
                                                                     if f"{place}/{name}".endswith(f"/{missing}")])
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}

    def read_only(file, mode="r", *args, **more):
        if set(mode) & set("wxa+") and str(file).startswith(str(out)):
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
        return opened(file, mode, *args, **more)

    monkeypatch.setattr("builtins.open", read_only)
    monkeypatch.setattr("pathlib.Path.open", read_only)
    assert main(["resume", str(out)]) == 0
    said = capsys.readouterr().out
    assert "is finished: nothing to resume" in said
    assert "points of A_avg" in said
    notes = [line for line in said.splitlines() if line.startswith("note: ")]
    assert re.fullmatch(rf"note: figures could not be written: {out}/\S+\.png: Permission denied", notes[-1])
    assert len(notes) == (1 if missing == "figures" else 2)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    monkeypatch.undo()
    assert main(["resume", str(out)]) == 0
    assert (out / missing).exists()


def test_what_is_noted_of_kappa_0_is_what_is_run(tmp_path, monkeypatch, capsys):
    """A lower gamma takes the usual one along; runs from before that was noted go on as they were."""
    asked = ["run", "--data", "fashion", "--gamma", "2.5", "--limit", "64", "--width", "4", "--maps", "0", "--seeds",
             "1"]
    assert main([*asked, "--kappa-0", "4", "--out", str(tmp_path / "refused")]) == 2
    assert capsys.readouterr().err == "droptop: --kappa-0 takes a percentage up to gamma, 2.5, not 4.0\n"
    assert not (tmp_path / "refused").exists()
    old, new = tmp_path / "old", tmp_path / "new"
    assert main([*asked, "--out", str(new)]) == 0
    with monkeypatch.context() as before:
        before.setattr("droptop.config.Config.as_run", lambda config: config)
        assert main([*asked, "--out", str(old)]) == 0
    for run, noted in ((old, 5.0), (new, 2.5)):
        assert main(["resume", str(run), "--seeds", "2"]) == 0
        assert tomllib.loads((run / "config.toml").read_text())["droptop"]["kappa_0"] == noted
        assert restore(find_place(run)).notes == []
    for seed in (0, 1):
        name = f"seed-{seed}/metrics.jsonl"
        assert (new / name).read_bytes() == (old / name).read_bytes()


def test_a_run_notes_the_commits_that_it_went_on_with(comparison, tmp_path):
    run, path = tmp_path / "run", tmp_path / "run/environment.json"
    shutil.copytree(comparison[0] / "droptop", run)
    before = json.loads(path.read_text())
    config = load(run)[1]
    notes = []

    def went_on(commit, unfinished):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"commit": commit}))
        note_environment(run, config, unfinished, notes.append)
        return [noted["commit"] for noted in environments(run)]

    assert went_on("then", unfinished=False) == ["then"]
    assert not notes  # nothing ran
    assert went_on("then", unfinished=True) == ["then", before["commit"]] == went_on("then", unfinished=True)
    assert len(notes) == 2
    assert all("commit changed since this run began" in note for note in notes)
    assert environments(run)[1] == before


def test_seeds_that_are_added_are_as_if_they_had_been_there(comparison, tmp_path):
    arm, more, alone = comparison[0] / "droptop", tmp_path / "more", tmp_path / "alone"
    shutil.copytree(arm, more)
    done = droptop("resume", more, "--seeds", "3")
    assert done.returncode == 0, done.stderr
    assert "finished" not in done.stdout
    assert droptop("run", "--config", arm / "config.toml", "--seeds", "1", "--first-seed", "2", "--out",
                   alone).returncode == 0
    for name in ("metrics.jsonl", "result.json"):
        assert (more / "seed-2" / name).read_bytes() == (alone / "seed-2" / name).read_bytes()
        assert (more / "seed-0" / name).read_bytes() == (arm / "seed-0" / name).read_bytes()
    assert json.loads((more / "summary.json").read_text())["seeds"] == [0, 1, 2]
    before = (more / "config.toml").read_bytes()
    assert tomllib.loads(before.decode())["seeds"] == 3
    with locked(more / "seed-1"):
        assert "no other command is at work" in droptop("resume", more, "--seeds", "4").stderr
    for seeds, said in (("2", "at least the 3 that were begun"), ("x", "an integer")):
        done = droptop("resume", more, "--seeds", seeds)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert (more / "config.toml").read_bytes() == before
    shutil.rmtree(more / "seed-2")  # as if it had not been begun
    assert droptop("resume", more, "--seeds", "2").returncode == 0
    assert (more / "summary.json").read_bytes() == (arm / "summary.json").read_bytes()


def test_what_was_run_with_other_options_is_not_gone_on_with(comparison, tmp_path):
    out = tmp_path / "edited"
    shutil.copytree(comparison[0], out)
    (out / "config.toml").write_text((out / "config.toml").read_text().replace("width = 4", "width = 6"))
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for more in (["--seeds", "3"], []):
        done = droptop("resume", out, *more)
        assert (done.returncode, done.stdout) == (2, "")
        assert re.search(r"config.toml has changed since \S+ began", done.stderr)
        for path in out.glob("*/seed-*/checkpoints"):  # as somebody does to save room
            shutil.rmtree(path)
        before = {path: data for path, data in before.items() if "checkpoints" not in path.parts}
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_of_two_commands_for_one_new_folder_the_first_has_it(tmp_path, monkeypatch):
    """Both find it empty; while the second one builds its learner, the first one begins."""
    out, config = tmp_path / "out", configure("fashion", debias="none", width=4, limit=64)
    first = iter([partial(begin, "run", config, out)])
    monkeypatch.setattr(engine_run, "build_learner", lambda *args, **options: next(first, bool)())
    with pytest.raises(BadRequest, match="another command has just begun in"):
        begin("run", configure("fashion", debias="none", width=4, limit=64, lr=0.5), out)
    assert "lr = 0.05" in (out / "config.toml").read_text()


def test_a_busy_folder_is_waited_for_and_that_is_said(comparison, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(comparison[0] / "droptop", run)
    (run / "seed-0/result.json").unlink()
    with locked(run / "seed-0"):
        process = subprocess.Popen(command("resume", run), stdout=subprocess.PIPE, text=True, env=environment())
        told = next(line for line in process.stdout if "another process" in line)
    assert f"{run / 'seed-0'} is being written by another process; waiting for it up to 30 s" in told
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "A_avg" in rest


def test_damaged_records_are_made_anew_or_named(comparison, tmp_path, capsys):
    out = tmp_path / "damaged"
    shutil.copytree(comparison[0], out)
    for seed, damage in enumerate(("{", "{}")):
        (out / f"none/seed-{seed}/result.json").write_text(damage)
    assert main(["status", str(out)]) == 0
    states = capsys.readouterr().out
    assert (states.count("stopped"), states.count("done")) == (2, 2)
    assert (out / "none/seed-0/result.json").read_text() == "{"  # whoever asks changes nothing
    done = droptop("resume", out)
    assert done.returncode == 0
    assert "none seed 0: task 5/5, step 10/10" in done.stdout  # and not 6/5: all that was missing is the result
    assert (out / "compare.json").read_bytes() == (comparison[0] / "compare.json").read_bytes()
    (out / "environment.json").write_text("{")
    done = droptop("resume", out)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert f"{out / 'environment.json'} is damaged: " in done.stderr


@pytest.mark.parametrize(("damage", "says"), [
    (lambda text: text[:-40], "metrics.jsonl is damaged in line 10: "),
    (lambda text: text.replace('"task": 1', "garbage", 1), "metrics.jsonl is damaged in line 3: "),
    (lambda text: text[: text.index('{"step": 9')], "metrics.jsonl is damaged: it has the ends of 4 tasks, not of 5"),
    (lambda text: "", "metrics.jsonl is damaged: it has the ends of 0 tasks, not of 5"),
    (None, "metrics.jsonl is not there")])
def test_metrics_of_a_finished_seed_that_are_damaged_cost_its_curves_alone(comparison, tmp_path, capsys, damage, says):
    run = tmp_path / "run"
    shutil.copytree(comparison[0] / "droptop", run)
    for path in (run / "seed-0/metrics.jsonl", run / "figures/kappa.png", run / "figures/shortcut.png"):
        if path.suffix == ".jsonl" and damage is not None:
            path.write_text(damage(path.read_text()))
        else:
            path.unlink()
    assert main(["resume", str(run)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.count("note: ") == 1
    assert f"note: {run}/seed-0/{says}" in said.out
    assert f"curves over steps lack seed 0: delete {run}/seed-0, and `droptop resume {run}` makes it anew" in said.out
    assert "is finished: nothing to resume" in said.out
    assert "A_avg" in said.out
    assert (run / "summary.json").read_bytes() == (comparison[0] / "droptop/summary.json").read_bytes()
    assert all((run / f"figures/{name}.png").exists() for name in ("kappa", "shortcut"))  # of the other seed


def test_what_was_damaged_after_it_was_done_is_made_anew_as_is_said(comparison, tmp_path, capsys):
    run, whole = tmp_path / "run", comparison[0] / "droptop"
    shutil.copytree(whole, run)
    for seed in (0, 1):
        (run / f"seed-{seed}/metrics.jsonl").unlink()
    for path in run.glob("seed-0/checkpoints/*.safetensors"):
        path.write_bytes(b"gone")
    shutil.rmtree(run / "seed-1/checkpoints")
    for seed in (0, 1):
        assert main(["export", str(run), "--seed", str(seed), "--format", "safetensors"]) == 1
        assert capsys.readouterr().err == (
            f"droptop: no checkpoint in {run}/seed-{seed}/checkpoints is whole: delete {run}/seed-{seed}/result.json, "
            f"and `droptop resume {run}` makes them anew\n")
    assert main(["resume", str(run)]) == 0  # with no curve at all
    (run / "seed-0/result.json").unlink()
    shutil.rmtree(run / "seed-1")
    assert droptop("resume", run).returncode == 0
    for seed in (0, 1):
        for name in ("metrics.jsonl", "result.json", "checkpoints/step-000000010.safetensors"):
            assert (run / f"seed-{seed}" / name).read_bytes() == (whole / f"seed-{seed}" / name).read_bytes(), name


@pytest.mark.parametrize("args", [["--data", "fashion", "--eval-every", "3"],
                                  ["--data", "fashion-background", "--debias", "fixed"],
                                  ["--class-order", "random", "--reference", "--no-drop-last", "--batch", "30"]])
def test_run(args, tmp_path):
    done = droptop("run", *SHORT, *args, "--seeds", "1", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "A_avg" in done.stdout
    assert "mean ± standard error; F_last: lower is better" in " ".join(done.stdout.split())
    lines = (tmp_path / "out/seed-0/metrics.jsonl").read_text().splitlines()
    evaluated = [json.loads(line)["step"] for line in lines if '"eval"' in line]
    assert evaluated == ([2, 3, 4, 6, 8, 9, 10] if "--eval-every" in args else
                         [3, 6, 9, 12, 15] if "--batch" in args else [2, 4, 6, 8, 10])


def test_a_stream_of_every_difficulty(tmp_path):
    done = droptop("run", *SHORT, "--data", "fashion", "--split", "bag,boot/0,1,dress/sandal,2", "--imbalance", "400",
                   "--label-noise", "20", "--blurry", "40", "--limit", "90", "--batch", "15", "--eval-every", "4",
                   "--seeds", "1", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "A_auc" in done.stdout
    lines = [json.loads(line) for line in (tmp_path / "out/seed-0/metrics.jsonl").read_text().splitlines()]
    result = json.loads((tmp_path / "out/seed-0/result.json").read_text())
    assert result["tasks"] == [[8, 9], [0, 1, 3], [5, 2]]
    figures = result["tests"]["clean"]
    assert [[a is None for a in row] for row in figures["matrix"]] == [[j > i for j in range(3)] for i in range(3)]
    area, before = 0.0, 0
    for line in lines:
        if "eval" in line:
            tally = line["eval"]["clean"]["all"]
            area += (line["step"] - before) * 100 * sum(tally["correct"]) / sum(tally["n"])
            before = line["step"]
    assert figures["A_auc"] == pytest.approx(area / before)
    first = next(line["eval"]["clean"]["all"]["n"] for line in lines if line.get("task_end"))
    assert first[8] == first[9] == 200
    assert sum(first) > 400  # classes of later tasks have been seen already
    assert first[4] == first[6] == first[7] == 0  # those left out never are


def test_seeds_of_unequal_lengths_share_a_figure():
    """Where the seed says which classes are rare, it also says how many batches there are."""
    lines = [{"step": step, "dropped": {"share": 0.2, "chance": 0.1}} for step in range(1, 21)]
    figure = shortcut_shares([lines, lines[:18]], "title", window=4)
    assert [len(line.get_xdata()) for line in figure.axes[0].lines[:2]] == [15, 15]
    plt.close(figure)


@pytest.mark.parametrize(("args", "names"), [
    ("compare --gamma 120 --out OUT", "--gamma takes a percentage"),
    ("compare --memory 0 --out OUT", "--memory takes"),
    ("compare --alpha 1.5 --out OUT", "--alpha takes"),
    ("compare --gama 5 --out OUT", "did you mean --gamma"),
    ("compare --seeds five --out OUT", "--seeds takes an integer, not 'five'"),
    ("compare --drop all --out OUT", "--drop takes one of"),
    ("run --debias none --gamma 5 --out OUT", "unknown option gamma"),
    ("compare --debias none --out OUT", "--debias"),
    ("compare --data imagenet --out OUT", "there is no stream imagenet; there are fashion"),
    ("compare --method sgd --out OUT", "--method takes one of er"),
    ("compare --data fashon --out OUT", "did you mean fashion?"),
    ("compare --method deerpp --out OUT", "did you mean derpp?"),
    ("compare --debias dorptop --out OUT", "--debias takes one of none, droptop"),
    ("compare --debias dorptop --out OUT", "not dorptop; did you mean droptop?"),
    ("paper tabel1 --out OUT", "there is no recipe tabel1; there are table1"),
    ("paper tabel1 --out OUT", "did you mean table1?"),
    ("data lits", "did you mean list?"),
    ("comprae --out OUT", "did you mean compare?"),
    ("compare --config nowhere.toml --out OUT", "droptop: nowhere.toml is not there"),
    ("compare --config HERE --out OUT", "cannot be read: Is a directory"),
    ("compare --config HERE/note.txt --out OUT", "note.txt is not TOML: "),
    ("run --config examples/study.toml --out OUT", "`droptop sweep examples/study.toml --out FOLDER` runs that"),
    ("run --tasks 5 --split 0,1/2,3 --out OUT", "--split takes the place of --tasks, not both"),
    ("run --split 0,1/2,3 --stream.class-order=random --out OUT", "--split takes the place of --class-order"),
    ("compare --weights nowhere --out OUT", "--weights"),
    ("compare --weights random --out OUT", "--weights takes a file or hf:OWNER/NAME with a ResNet"),
    ("compare --method l2p --out OUT", "--weights random"),
    ("run --method dualprompt --weights random --experts 4 --out OUT", "--experts takes at least one for each of 5"),
    ("compare --root nowhere --out OUT", "--root"),
    ("compare --limit 5 --out OUT", "--limit"),
    ("compare --tasks 3 --out OUT", "--tasks"),
    ("compare --split bag/0,8 --out OUT", "--split takes every class once, not bag twice"),
    ("compare --stem 7x7/2-pool --debias no-fusion --out OUT", "1 x 1"),
    ("compare something --out OUT", "droptop compare has no place for something"),
    ("compare --seeds", "--seeds takes a value"),
    ("compare", "--out is missing"),
    ("compare --out HERE", "holds something already"),
    ("compare --out HERE/note.txt", "is a file"),
    ("resume HERE", "not a run folder"),
    ("resume", "FOLDER is missing"),
    ("resume HERE --lr 0.3", "droptop resume takes no --lr; `droptop resume --help` says what it takes"),
    ("resume HERE --sedes=3", "droptop resume takes no --sedes; did you mean --seeds?"),
    ("retrain", "unknown command"),
])
def test_what_cannot_be_done(args, names, tmp_path, capsys):
    (tmp_path / "here").mkdir()
    (tmp_path / "here/note.txt").write_text("mine")
    assert main(args.replace("OUT", f"{tmp_path}/out").replace("HERE", f"{tmp_path}/here").split()) == 2
    said = capsys.readouterr()
    assert names in said.err
    assert re.fullmatch(r"droptop: [^\n]+\n", said.err)  # one line
    assert said.out == ""
    assert not (tmp_path / "out").exists()
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["note.txt"]


def test_the_real_command_says_what_cannot_be_done():
    done = droptop("compare", "--gamma", "120", "--out", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"droptop: --gamma takes a percentage[^\n]+\n", done.stderr)


def test_a_shortcut_that_is_never_contradicted(tmp_path):
    done = droptop("compare", *SHORT, "--correlation", "1", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "not measured" in done.stdout
    assert "nan" not in done.stdout.lower()
    effects = json.loads((tmp_path / "out/compare.json").read_text())["effects"]["biased"]
    assert effects["contradict"] == dict.fromkeys(("diff", "ci95", "p", "p_holm"))


@pytest.mark.parametrize("args", [["--replay-forward", "separate", "--memory-batch", "16"], ["--reference"]])
def test_share_on_the_shortcut_is_of_the_stream(args, tmp_path):
    done = droptop("run", *SHORT, "--seeds", "1", *args, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    dropped = json.loads((tmp_path / "out/summary.json").read_text())["dropped"]
    assert dropped["share"][0] > 2 * dropped["chance"][0]  # chance is what other images' stickers would give


def test_a_request_that_was_accepted_resumes(tmp_path):
    args = ["--method", "mir", "--memory-batch", "60", "--candidates", "80", "--memory", "100"]
    done = droptop("run", *SHORT, *args, "--seeds", "1", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(tmp_path / "out/seed-0/checkpoints")
    done = droptop("resume", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "finished" in done.stdout


def test_bench(tmp_path):
    done = droptop("bench", "--methods", "er,finetune", "--steps", "3", "--width", "4", "--out", tmp_path / "b.json")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "b.json").read_text())["rows"]
    assert [(row["method"], row["debias"], row["engine"]) for row in rows] == [
        ("er", "none", "plain loop"), ("er", "none", "eager"), ("er", "droptop", "eager"),
        ("finetune", "none", "eager"), ("finetune", "droptop", "eager")]
    assert rows[2]["shares"].keys() == {"rest", "memory", "images", "forward", "mask", "attention", "backward", "probe"}
    assert all(99 < sum(row["shares"].values()) < 101 for row in rows[1:])
    for args in (["--methods", "sgd"], ["--steps", "1"], ["--out", "nowhere/b.json"], ["--debias", "none"],
                 ["--seeds", "1,5"], ["--engines", "graphs"], ["--data", "nothing"]):
        wrong = droptop("bench", *args)
        assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)


def test_divergence_names_task_and_batch(tmp_path):
    done = droptop("run", *SHORT, "--lr", "1e30", "--seeds", "1", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert re.search(r"droptop seed 0: task 0, batch \d: the loss is .*lower --lr$", done.stderr)  # no use to resume
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("args", ["--help", "--version", "run --help", "compare --help", "resume --help",
                                  "bench --help"])
def test_help(args):
    done = droptop(*args.split())
    assert done.returncode == 0
    assert "droptop" in done.stdout


def test_help_does_not_wait_for_torch():
    code = ("import sys, droptop\nfrom droptop.cli import main\n"
            "assert [main([word]) for word in ('--help', '--version', 'runn')] == [0, 0, 2]\n"
            "assert 'torch' not in sys.modules")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("droptop: unknown command runn: there are run, compare, resume,")


def test_ctrl_c_while_a_command_is_loaded(monkeypatch, capsys):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["droptop.cli.main"], "import_module", interrupted)
    assert main(["run", "--out", "nowhere"]) == 130
    assert capsys.readouterr().err == "droptop: interrupted\n"


def test_a_note_is_said_once(capsys):
    assert main(["--version"]) == 0
    for text in ("one", "one", "other"):
        with warnings.catch_warnings():  # as figures do
            warnings.simplefilter("ignore")
        warnings.warn(text, stacklevel=1)
    assert capsys.readouterr().err == "note: one\nnote: other\n"


def test_every_command_is_where_it_is_said_to_be():
    for name, file in COMMANDS.items():
        assert callable(getattr(importlib.import_module(f"droptop.cli.{file}"), name))
        assert f"\n  {name} " in USAGE
