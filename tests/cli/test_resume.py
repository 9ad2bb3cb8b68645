"""Folders that were begun or finished: gone on with, added to, shown, damaged; by the real command."""

import errno
import json
import re
import shutil
import subprocess
import tomllib
from functools import partial

import pytest
from fake_gpus import pretend

from droptop.cli import main
from droptop.errors import BadRequest
from droptop.runs import requests as engine_run
from droptop.runs.config import configure
from droptop.runs.loading import find_seed, restore
from droptop.runs.noted import environments
from droptop.runs.requests import begin, load, record_environment, with_device
from droptop.system.locks import folder_lock as locked

from plans import plan
from toys import OF_TWO_TASKS, command, environment


def test_resume_of_a_finished_run_runs_nothing(comparison, here):
    out, _ = comparison
    before = (out / "compare.json").read_text()
    done = here("resume", out)
    assert done.returncode == 0
    assert "finished" in done.stdout
    assert (out / "compare.json").read_text() == before


@pytest.mark.parametrize("missing", ["none/summary.json", "environment.json", "figures"])
def test_a_finished_run_is_shown_from_a_folder_that_cannot_be_written(
    comparison, tmp_path, monkeypatch, capsys, missing
):
    """Where nobody can write, that is; root can everywhere, so that writing is made to fail here."""
    out, opened = tmp_path / "out", open
    shutil.copytree(
        comparison[0],
        out,
        ignore=lambda place, names: [name for name in names if f"{place}/{name}".endswith(f"/{missing}")],
    )
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
    assert re.fullmatch(rf"note: figures could not be written: {out}/\S+\.png(\.part)?: Permission denied", notes[-1])
    assert len(notes) == (1 if missing == "figures" else 2)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    monkeypatch.undo()
    assert main(["resume", str(out)]) == 0
    assert (out / missing).exists()


def test_config_toml_has_the_kappa_0_that_is_run(tmp_path, monkeypatch, capsys):
    """A lower gamma takes the usual one along; runs from before that was noted go on as they were."""
    asked = ["run", "--data", "fashion", "--gamma", "2.5", "--width", "4", "--maps", "0", "--seeds", "1", *OF_TWO_TASKS]
    assert main([*asked, "--kappa-0", "4", "--out", str(tmp_path / "refused")]) == 2
    assert capsys.readouterr().err == "droptop: --kappa-0 takes a percentage up to gamma, 2.5, not 4.0\n"
    assert not (tmp_path / "refused").exists()
    old, new = tmp_path / "old", tmp_path / "new"
    assert main([*asked, "--out", str(new)]) == 0
    with monkeypatch.context() as before:
        before.setattr("droptop.runs.config.Config.with_effective_kappa_0", lambda config: config)
        assert main([*asked, "--out", str(old)]) == 0
    for run, noted in ((old, 5.0), (new, 2.5)):
        assert main(["resume", str(run), "--seeds", "2"]) == 0
        assert tomllib.loads((run / "config.toml").read_text())["droptop"]["kappa_0"] == noted
        assert restore(find_seed(run)).notes == []
    for seed in (0, 1):
        name = f"seed-{seed}/metrics.jsonl"
        assert (new / name).read_bytes() == (old / name).read_bytes()


def test_environment_json_has_every_commit(comparison, tmp_path):
    run, path = tmp_path / "run", tmp_path / "run/environment.json"
    shutil.copytree(comparison[0] / "droptop", run)
    before = json.loads(path.read_text())
    config = load(run)
    notes = []

    def went_on(commit, unfinished):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"commit": commit}))
        record_environment(run, config, unfinished, notes.append)
        return [noted["commit"] for noted in environments(run)]

    assert went_on("then", unfinished=False) == ["then"]
    assert not notes  # nothing ran
    assert went_on("then", unfinished=True) == ["then", before["commit"]] == went_on("then", unfinished=True)
    assert len(notes) == 2
    assert all("commit changed since this run began" in note for note in notes)
    assert environments(run)[1] == before


def test_added_seeds_have_the_same_bytes(comparison, tmp_path, here):
    arm, more, alone = comparison[0] / "droptop", tmp_path / "more", tmp_path / "alone"
    shutil.copytree(arm, more)
    done = here("resume", more, "--seeds", "3")
    assert done.returncode == 0, done.stderr
    assert "finished" not in done.stdout
    assert (
        here("run", "--config", arm / "config.toml", "--seeds", "1", "--first-seed", "2", "--out", alone).returncode
        == 0
    )
    for name in ("metrics.jsonl", "result.json"):
        assert (more / "seed-2" / name).read_bytes() == (alone / "seed-2" / name).read_bytes()
        assert (more / "seed-0" / name).read_bytes() == (arm / "seed-0" / name).read_bytes()
    assert json.loads((more / "summary.json").read_text())["seeds"] == [0, 1, 2]
    before = (more / "config.toml").read_bytes()
    assert tomllib.loads(before.decode())["seeds"] == 3
    with locked(more / "seed-1"):
        assert "no other command is at work" in here("resume", more, "--seeds", "4").stderr
    for seeds, said in (("2", "at least the 3 that were begun"), ("x", "an integer")):
        done = here("resume", more, "--seeds", seeds)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert (more / "config.toml").read_bytes() == before
    shutil.rmtree(more / "seed-2")  # as if it had not been begun
    assert here("resume", more, "--seeds", "2").returncode == 0
    assert (more / "summary.json").read_bytes() == (arm / "summary.json").read_bytes()


def test_an_edited_config_is_refused(comparison, tmp_path, here):
    out = tmp_path / "edited"
    shutil.copytree(comparison[0], out)
    (out / "config.toml").write_text((out / "config.toml").read_text().replace("width = 4", "width = 6"))
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for more in (["--seeds", "3"], []):
        done = here("resume", out, *more)
        assert (done.returncode, done.stdout) == (2, "")
        assert re.search(r"config.toml has changed since \S+ began", done.stderr)
        for path in out.glob("*/seed-*/checkpoints"):  # as somebody does to save room
            shutil.rmtree(path)
        before = {path: data for path, data in before.items() if "checkpoints" not in path.parts}
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_two_commands_cannot_begin_in_one_folder(tmp_path, monkeypatch):
    """Both find it empty; while the second one builds its learner, the first one begins."""
    out, config = tmp_path / "out", configure("fashion", debias="none", width=4, limit=64)
    first, build = iter([partial(begin, plan(config), out)]), engine_run.build_learner

    def building(*args, **options):
        next(first, bool)()
        return build(*args, **options)

    monkeypatch.setattr(engine_run, "build_learner", building)
    with pytest.raises(BadRequest, match="another command has just begun in"):
        begin(plan(configure("fashion", debias="none", width=4, limit=64, lr=0.5)), out)
    assert "lr = 0.05" in (out / "config.toml").read_text()


def test_a_kill_at_the_very_beginning_does_not_bar_the_folder(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "config.toml.part").write_text('command = "ru')
    asked = plan(configure("fashion", debias="none", width=4, limit=64))
    begin(asked, out)
    assert (out / "config.toml").read_text() == asked.toml()
    assert [path.name for path in out.iterdir()] == ["config.toml"]


def test_resume_waits_for_a_busy_folder_and_says_so(comparison, tmp_path):
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


def test_damaged_results_are_made_again(comparison, tmp_path, capsys, here):
    out = tmp_path / "out"
    shutil.copytree(comparison[0], out)
    for seed, damage in enumerate(("{", "{}")):
        (out / f"none/seed-{seed}/result.json").write_text(damage)
    assert main(["status", str(out)]) == 0
    states = capsys.readouterr().out.split()
    assert (states.count("damaged"), states.count("done")) == (2, 2)
    assert (out / "none/seed-0/result.json").read_text() == "{"  # whoever asks changes nothing
    done = here("resume", out)
    assert done.returncode == 0
    assert "none seed 0: task 2/2, step 10/10" in done.stdout  # and not 3/2: all that was missing is the result
    assert (out / "compare.json").read_bytes() == (comparison[0] / "compare.json").read_bytes()
    (out / "environment.json").write_text("{")
    done = here("resume", out)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert f"{out / 'environment.json'} is damaged: " in done.stderr


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text[:-40], "metrics.jsonl is damaged in line 10: "),
        (lambda text: text.replace('"task": 1', "garbage", 1), "metrics.jsonl is damaged in line 6: "),
        (
            lambda text: text[: text.index('{"step": 9')],
            "metrics.jsonl is damaged: it has the ends of 1 tasks, not of 2",
        ),
        (lambda text: "", "metrics.jsonl is damaged: it has the ends of 0 tasks, not of 2"),
        (None, "metrics.jsonl is not there"),
    ],
)
def test_damaged_metrics_of_a_finished_seed_cost_its_curves_alone(comparison, tmp_path, capsys, damage, says):
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


def test_a_damaged_seed_is_made_again_to_the_same_bytes(comparison, tmp_path, capsys, here):
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
            f"and `droptop resume {run}` makes them anew\n"
        )
    assert main(["resume", str(run)]) == 0  # with no curve at all
    (run / "seed-0/result.json").unlink()
    shutil.rmtree(run / "seed-1")
    assert here("resume", run).returncode == 0
    for seed in (0, 1):
        for name in ("metrics.jsonl", "result.json", "checkpoints/step-000000010.safetensors"):
            assert (run / f"seed-{seed}" / name).read_bytes() == (whole / f"seed-{seed}" / name).read_bytes(), name


def test_a_run_goes_on_with_another_gpu_but_no_other_kind_of_device(tmp_path, monkeypatch, here):
    out = tmp_path / "out"
    begin(plan(configure("fashion-sticker", debias="none", limit=64, width=4)), out)
    refused = here("resume", out, "--device", "cuda:1")
    assert refused.returncode == 2
    assert refused.stderr.strip().endswith(f"--device takes a device of the kind that {out} began on, cpu, not cuda:1")
    pretend(monkeypatch)
    begun = plan(configure("fashion", device="cuda"))
    for device in ("cuda:1", "cuda:all"):
        changed = with_device(begun, out, device)
        assert changed.options.device == device
        assert changed.fingerprint() == begun.fingerprint()
        assert f'device = "{device}"' in changed.toml()
    assert with_device(begun, out, None) == begun
