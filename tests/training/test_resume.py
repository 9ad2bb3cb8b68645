"""A run that was killed at any moment ends with the same bytes as one that was not."""

import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from droptop.runs import checkpoint
from droptop.runs.config import configure
from droptop.training.seed_run import Interrupted, SeedRun

from toys import QUICK, command, droptop, environment

OPTIONS = {"limit": 320, "split": "0,1/2,3", "width": 4, "memory": 40, "checkpoint_seconds": 0.0, "seeds": 1} | QUICK
FLAGS = [token for name, value in OPTIONS.items() for token in (f"--{name.replace('_', '-')}", str(value))]


def digest(run):
    """Hashes of everything a seed leaves behind: its last tensors, its metrics, its result, its records."""
    seed = run / "seed-0"
    header = checkpoint.newest_first(seed / "checkpoints")[0]
    tensors, about = checkpoint.read(header)
    assert {"model.fc.weight", "memory.x", "debias.droptop.intensity.history", "random.memory"} <= tensors.keys()
    records = sorted([*seed.glob("maps/*"), *seed.glob("confusion/*")])
    assert len(records) == 1 + 4 + 2  # the images, twice a task, and once a task
    files = [header.with_suffix(".safetensors"), seed / "metrics.jsonl", seed / "result.json", *records]
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in files] + [about["position"]]


def train(run, **options):
    SeedRun(configure(**OPTIONS | options), run, 0, lambda progress: None)()


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    run = tmp_path_factory.mktemp("straight")
    train(run)
    return digest(run)


def test_checkpoints_do_not_change_a_run(straight, tmp_path):
    train(tmp_path, checkpoint_seconds=1000.0)
    assert digest(tmp_path) == straight


def in_background(folder, **options):
    """A run that writes its checkpoints in the background, as on a GPU."""
    run = SeedRun(configure(**OPTIONS | options), folder, 0, lambda progress: None)
    run.checkpoints.background = True
    return run


def test_checkpoints_written_in_the_background_are_the_same(straight, tmp_path):
    in_background(tmp_path / "whole")()
    assert digest(tmp_path / "whole") == straight
    parts = in_background(tmp_path / "parts")
    asked = iter([False] * 7 + [True])
    parts.stop = lambda: next(asked)
    with pytest.raises(Interrupted):
        parts()
    assert checkpoint.newest_first(parts.checkpoints.folder)[0].stem == checkpoint.step_name(
        8
    )  # there once it has stopped
    in_background(tmp_path / "parts")()
    assert digest(tmp_path / "parts") == straight


def test_a_checkpoint_that_cannot_be_written_in_the_background_ends_it(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write", full)
    with pytest.raises(OSError, match="No space left"):
        in_background(tmp_path)()


def test_a_run_that_fails_waits_for_its_checkpoint(tmp_path, monkeypatch):
    written, write, run = [], checkpoint.write, in_background(tmp_path)

    def slowly(*given):
        time.sleep(0.3)
        write(*given)
        written.append(given[1])

    def fail(*_):
        if run.checkpoints.writing is not None:
            raise RuntimeError("something else")
        return {}

    monkeypatch.setattr(checkpoint, "write", slowly)
    monkeypatch.setattr(run, "metrics_line", fail)
    with pytest.raises(RuntimeError, match="something else"):
        run()
    assert len(written) == 1


def die_in_write(run, when):
    """Kills itself at its `when`-th call of fsync or rename, that is, in the middle of writing something."""
    calls, fsync, replace = [0], os.fsync, type(run).replace

    def counted(original):
        def wrapped(*args):
            calls[0] += 1
            if calls[0] == when:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args)

        return wrapped

    os.fsync, type(run).replace = counted(fsync), counted(replace)
    train(run)


def test_a_run_killed_while_writing_resumes_to_the_same_bytes(straight, tmp_path):
    context = multiprocessing.get_context("forkserver")  # loads torch once
    context.set_forkserver_preload(["droptop.training.seed_run"])
    kills = 0
    for when in (1, 2, 3, 4, 5, 6, 7, 9, 12):
        process = context.Process(target=die_in_write, args=(tmp_path, when))
        process.start()
        process.join()
        kills += process.exitcode == -signal.SIGKILL
    train(tmp_path)
    assert kills >= 7
    assert digest(tmp_path) == straight


@pytest.mark.parametrize("wanted", [3, pytest.param(10, marks=pytest.mark.faults)])
def test_a_run_killed_at_random_resumes_to_the_same_bytes(straight, tmp_path, wanted):
    """kill -9 of the real command, so many times, each somewhere in what is left of the run."""
    out, moments = tmp_path / "out", random.Random(0)
    kills = 0
    for attempt in range(8 * wanted):
        if kills == wanted:
            break
        args = ["resume", out] if (out / "config.toml").exists() else ["run", *FLAGS, "--out", out]
        process = subprocess.Popen(
            command(*args), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
        )
        begun = time.monotonic()
        while not (out / "seed-0/metrics.jsonl").exists() and time.monotonic() - begun < 60:
            time.sleep(0.02)
        time.sleep(moments.uniform(0, 1 if attempt == 0 else 3))
        if (out / "seed-0/result.json").exists():
            process.wait()
            (out / "seed-0/result.json").unlink()  # it was faster than the hangman: it never said that it was done
            continue
        process.kill()
        process.wait()
        kills += 1
    done = droptop("resume", out)
    assert done.returncode == 0, done.stderr
    assert kills == wanted
    assert digest(out) == straight


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_signals_save_a_checkpoint(tmp_path, signum):
    out = tmp_path / "out"
    process = subprocess.Popen(
        command("run", *FLAGS, "--checkpoint-seconds", "1000", "--limit", "2000", "--out", out),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # as in a terminal
    while not (out / "seed-0/metrics.jsonl").exists():
        time.sleep(0.05)
    time.sleep(0.1)
    asked = time.monotonic()
    process.send_signal(signum)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert time.monotonic() - asked < 10
    assert errors == f"droptop: interrupted; `droptop resume {out}` continues\n"
    assert len(checkpoint.newest_first(out / "seed-0/checkpoints")) == 1  # saved on the way out


def test_resume_gives_the_same_bytes(straight, tmp_path):
    for steps in (3, 1, 6):
        left = iter(range(steps))
        with pytest.raises(Interrupted):
            SeedRun(
                configure(**OPTIONS),
                tmp_path,
                0,
                lambda progress: None,
                stop=lambda left=left: next(left, None) is None,
            )()
    train(tmp_path)
    assert digest(tmp_path) == straight


def interrupted_run(run, steps=10):
    left = iter(range(steps))
    with pytest.raises(Interrupted):
        SeedRun(configure(**OPTIONS), run, 0, lambda progress: None, stop=lambda: next(left, None) is None)()
    return checkpoint.newest_first(run / "seed-0/checkpoints")


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(straight, tmp_path):
    interrupted_run(tmp_path, 5)
    newest, previous = interrupted_run(tmp_path, 3)[:2]
    data = bytearray(newest.with_suffix(".safetensors").read_bytes())
    data[len(data) // 2] ^= 1
    newest.with_suffix(".safetensors").write_bytes(data)
    warnings = []
    SeedRun(configure(**OPTIONS), tmp_path, 0, lambda progress: None, warn=warnings.append)()
    assert len(warnings) == 1
    assert newest.with_suffix(".safetensors").name in warnings[0]
    assert previous.exists() is False  # long replaced by later ones
    assert digest(tmp_path) == straight


def test_without_a_whole_checkpoint_a_run_starts_again(straight, tmp_path):
    for header in interrupted_run(tmp_path):
        header.write_text("{}")
    train(tmp_path)
    assert digest(tmp_path) == straight


def test_a_checkpoint_without_its_metrics_is_not_used(straight, tmp_path):
    interrupted_run(tmp_path)
    metrics = tmp_path / "seed-0/metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes()[:-30])
    warnings = []
    SeedRun(configure(**OPTIONS), tmp_path, 0, lambda progress: None, warn=warnings.append)()
    assert any("metrics.jsonl" in text for text in warnings)
    assert digest(tmp_path) == straight


def test_a_changed_config_is_refused_and_more_seeds_are_not(comparison, tmp_path, here):
    run = shutil.copytree(comparison[0] / "droptop", tmp_path / "out")
    (run / "seed-0/result.json").unlink()
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace("memory_batch = 32", "memory_batch = 16"))
    done = here("resume", run)
    assert done.returncode == 2
    assert "config.toml has changed" in done.stderr
    (run / "config.toml").write_text(text.replace("seeds = 2", "seeds = 3"))
    assert "`droptop resume" in here("resume", run).stderr  # with --seeds it goes on: it may have been a slip
    done = here("resume", run, "--seeds", "3")
    assert done.returncode == 0, done.stderr
    assert json.loads((run / "summary.json").read_text())["seeds"] == [0, 1, 2]


def test_a_killed_worker_is_reported(tmp_path):
    out = tmp_path / "out"
    process = subprocess.Popen(
        command("run", *FLAGS, "--limit", "2000", "--out", out),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    while not (out / "seed-0/metrics.jsonl").exists():
        time.sleep(0.05)
    children = subprocess.run(["pgrep", "-P", str(process.pid), "-f", "spawn_main"], capture_output=True, text=True)
    os.kill(int(children.stdout.split()[0]), signal.SIGKILL)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "its process died" in errors
    assert "droptop resume" in errors
