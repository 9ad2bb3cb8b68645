"""Nothing is lost and nothing runs twice when a sweep or its workers are interrupted or killed."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from droptop.cli import main
from droptop.sweeps.local import local
from droptop.sweeps.sweep import sweep

from studies import Silent, digests, write_study
from toys import command, environment


def start(study, out):
    return subprocess.Popen(
        command("sweep", study, "--out", out),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_one_sweep_holds_a_study_and_ctrl_c_saves(tmp_path, capsys):
    study = write_study(tmp_path / "study.toml", debias="none", limit=1000, seeds=3, checkpoint_seconds=1.0)
    out = tmp_path / "out"
    first = start(study, out)
    wait_for(lambda: any(out.glob("runs/*/seed-*/metrics.jsonl")))
    assert main(["sweep", str(study), "--out", str(out)]) == 2
    assert f"is being swept by process {first.pid}" in capsys.readouterr().err
    assert main(["status", str(out)]) == 0
    assert " 0 running" not in capsys.readouterr().out
    asked = time.monotonic()
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=20)
    assert time.monotonic() - asked < 10
    assert first.returncode == 130
    assert said.splitlines()[-1] == f"droptop: interrupted; `droptop sweep --out {out}` continues"
    assert any(out.glob("runs/*/seed-*/checkpoints/*.json"))
    assert len(list(out.glob("runs/*/seed-*/result.json"))) < 3
    assert sweep(None, out, local, Silent())["done"] == 3
    assert sweep(study, tmp_path / "straight", local, Silent())["done"] == 3
    assert digests(out) == digests(tmp_path / "straight")


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.faults)])
def test_kill_minus_nine_of_a_sweep_or_a_worker(tmp_path, kills, capsys):
    """At random moments, the driver or one of its workers; then the bytes are those of an undisturbed study."""
    study, out = write_study(tmp_path / "study.toml", debias="none", limit=400, seeds=4), tmp_path / "out"
    draw, hit = random.Random(0), {"driver": 0, "worker": 0}
    while sum(hit.values()) < kills:
        process = start(study, out)
        before = sum(len(path.read_bytes()) for path in out.glob("runs/*/seed-*/metrics.jsonl"))
        wait_for(
            lambda process=process, before=before: (
                process.poll() is not None
                or before < sum(len(path.read_bytes()) for path in out.glob("runs/*/seed-*/metrics.jsonl"))
            )
        )
        time.sleep(draw.uniform(0, 0.3))
        workers = children(process.pid) if process.poll() is None else []
        if workers and draw.random() < 0.5:
            os.kill(draw.choice(workers), signal.SIGKILL)
            hit["worker"] += 1
            time.sleep(draw.uniform(0, 0.3))
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            hit["driver"] += 1
        process.wait(60)
        process.stdout.close(), process.stderr.close()
        if len(list(out.glob("runs/*/seed-*/result.json"))) == 4:  # all done: start over
            for path in out.glob("runs/*/seed-*/result.json"):
                path.unlink()
    assert sweep(None, out, local, Silent()) == {"done": 4, "waiting": 0, "failed": 0}
    assert sweep(study, tmp_path / "straight", local, Silent())["done"] == 4
    assert digests(out) == digests(tmp_path / "straight")
    with capsys.disabled():
        print(f"\nkill -9: {hit['driver']} of a sweep, {hit['worker']} of a worker; all cells done, byte-equal")
