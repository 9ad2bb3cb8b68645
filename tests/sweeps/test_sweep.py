"""Nothing is lost and nothing runs twice, whatever happens to the machine."""

import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from droptop import BadRequest
from droptop.cli import main
from droptop.errors import WorkerDied
from droptop.sweeps import sweep as sweeping
from droptop.sweeps.local import local
from droptop.sweeps.study_folder import Index
from droptop.sweeps.sweep import sweep
from droptop.training.seed_run import SeedRun
from droptop.training.workers import Failure

from studies import Silent, write_study
from toys import command, droptop, environment


def digests(study):
    return {
        str(path.relative_to(study)): hashlib.sha256(path.read_bytes()).hexdigest()
        for name in ("metrics.jsonl", "result.json")
        for path in sorted(study.glob(f"runs/*/seed-*/{name}"))
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study of four cells, run without disturbance by the real command."""
    folder = tmp_path_factory.mktemp("whole")
    study = write_study(folder / "study.toml")
    done = droptop("sweep", study, "--out", folder / "out")
    assert done.returncode == 0, done.stderr
    assert "4 cells done, 0 failed" in done.stdout
    return folder / "out"


def test_cells_note_the_kappa_0_that_is_run_and_those_from_before_are_found(tmp_path, monkeypatch):
    def noted(out):
        return {
            path.parent.name: tomllib.loads(path.read_text())["droptop"]["kappa_0"]
            for path in out.glob("runs/*/config.toml")
        }

    study, old, new, watcher = tmp_path / "study.toml", tmp_path / "old", tmp_path / "new", Silent()
    options = {"debias": "droptop", "gamma": [2.5, 10.0]}
    with monkeypatch.context() as before:
        before.setattr("droptop.runs.config.Config.with_effective_kappa_0", lambda config: config)
        assert sweep(write_study(study, seeds=1, **options), old, local, watcher)["done"] == 2
    watcher = Silent()
    assert sweep(write_study(study, **options), old, local, watcher)["done"] == 4
    assert [seed for _, seed in watcher.cells] == [1, 1]
    assert sweep(study, new, local, watcher)["done"] == 4
    assert sorted(noted(old).values()) == [5.0, 5.0]
    assert sorted(noted(new).values()) == [2.5, 5.0]
    assert noted(old).keys() == noted(new).keys()
    assert digests(old) == digests(new)
    assert sweep(None, new, local, watcher)["done"] == 4  # and they go on
    with pytest.raises(BadRequest, match=r"--kappa-0 takes a percentage up to gamma, 2\.5, not 4\.0"):
        sweep(write_study(study, **options, kappa_0=4.0), tmp_path / "refused", local, watcher)
    assert not (tmp_path / "refused").exists()


def test_again_runs_nothing_and_more_cells_run_alone(whole, tmp_path):
    before = digests(whole)
    assert len(before) == 8
    watcher = Silent()
    assert sweep(None, whole, local, watcher) == {"done": 4, "waiting": 0, "failed": 0}
    assert watcher.cells == []
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    more = write_study(tmp_path / "more.toml", seeds=3)
    assert sweep(more, copy, local, watcher) == {"done": 6, "waiting": 0, "failed": 0}
    assert sorted(seed for _, seed in watcher.cells) == [2, 2]
    assert {name: digest for name, digest in digests(copy).items() if name in before} == before
    assert all(len(json.loads(path.read_text())["seeds"]) == 3 for path in copy.glob("runs/*/summary.json"))
    fewer = write_study(tmp_path / "fewer.toml", seeds=1, debias="none")  # the others stay, and do not count
    assert sweep(fewer, copy, local, watcher) == {"done": 1, "waiting": 0, "failed": 0}
    assert "5 more cells are of earlier versions" in droptop("status", copy).stdout


def test_a_damaged_result_is_made_anew(whole, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    before = digests(copy)
    damaged = next(copy.glob("runs/*/seed-1/result.json"))
    damaged.write_text(damaged.read_text()[:40])
    watcher = Silent()
    assert sweep(None, copy, local, watcher) == {"done": 4, "waiting": 0, "failed": 0}
    assert (watcher.began, len(watcher.cells)) == (3, 1)  # whatever the index has
    assert digests(copy) == before


def test_a_study_can_be_read_where_it_cannot_be_run(whole, tmp_path):
    """On a machine without its GPU, or without its data."""
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    for path in [copy / "study.toml", *copy.glob("runs/*/config.toml")]:
        text = path.read_text().replace('device = "cpu"\n', "")
        path.write_text('device = "cuda"\nroot = "/nowhere/at/all"\n' + text)
    index = Index(copy)
    assert sorted(index.statuses().values()) == ["done"] * 4
    assert len(list(index.values())) > 0


def test_cells_that_were_done_before_their_pack_failed_are_booked(tmp_path):
    """As on Ray, where a pack comes back as one."""
    study = write_study(tmp_path / "study.toml", debias="none", seeds=3)

    def engine(packs, driver):
        jobs = [pack[0] for pack in packs]
        for job in jobs[:2]:
            job.kind(job.config, job.run, job.seed, lambda progress: None)()
        again = driver.failed(jobs, Failure(WorkerDied, "lost", "lost"))
        assert again == [[jobs[2]]]
        local(again, driver)

    assert sweep(study, tmp_path / "out", engine, Silent()) == {"done": 3, "waiting": 0, "failed": 0}


def test_those_of_a_lost_company_that_had_not_begun_stay_together(tmp_path):
    study = write_study(tmp_path / "study.toml", debias="none", seeds=4)

    def engine(packs, driver):
        jobs = [pack[0] for pack in packs]
        lost = Failure(WorkerDied, "lost", "lost")
        assert driver.failed(jobs, lost) == [[job] for job in jobs]  # who is to blame?
        jobs[0].kind(jobs[0].config, jobs[0].run, jobs[0].seed, lambda progress: None)()
        (jobs[1].run / "seed-1").mkdir()
        again = driver.failed(jobs, lost)
        assert again == [[jobs[1]], jobs[2:]]
        local(again, driver)

    assert sweep(study, tmp_path / "out", engine, Silent()) == {"done": 4, "waiting": 0, "failed": 0}


def test_status_and_results(whole, tmp_path, capsys):
    status = droptop("status", whole)
    assert status.returncode == 0
    assert "4 done, 0 running, 0 waiting, 0 failed; no sweep is at work" in status.stdout
    found = droptop("results", whole, "--by", "method,debias", "--export", tmp_path / "r.csv")
    assert found.returncode == 0, found.stderr
    assert "droptop" in found.stdout
    assert "mean ± standard error; F_last: lower is better" in found.stdout
    assert f"6 rows in {tmp_path / 'r.csv'}\n" in found.stdout
    assert (tmp_path / "r.csv").read_text().count("\n") == 1 + 2 * 3  # two arms, three figures, a header
    for args in (
        ["status", tmp_path],
        ["results", tmp_path],
        ["results", whole, "--by", "weather"],
        ["sweep", "--out", tmp_path / "nothing"],
        ["results", whole, "--export", "x.pdf"],
        ["sweep", tmp_path / "none.toml", "--out", tmp_path / "x"],
        ["sweep"],
        ["sweep", whole / "study.toml", "--out", tmp_path],
    ):
        assert main([str(arg) for arg in args]) == 2, args
        assert len(capsys.readouterr().err.splitlines()) == 1, args
    assert main(["status", str(next(whole.glob("runs/*")))]) == 0
    assert "done" in capsys.readouterr().out


@pytest.mark.parametrize("damage", ["gone", "garbage", "empty", "old"])
def test_the_index_is_made_anew(whole, damage):
    path, before = whole / "index.sqlite", sorted(map(str, Index(whole).values()))
    for beside in whole.glob("index.sqlite-*"):
        beside.unlink()
    if damage == "gone":
        path.unlink()
    elif damage == "garbage":
        path.write_bytes(b"garbage" * 1000)
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        with sqlite3.connect(path) as database:
            database.execute("UPDATE about SET format = 0")
    assert sweep(None, whole, local, Silent())["waiting"] == 0
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(*) FROM cells WHERE status = 'done'").fetchone()[0] >= 4
    assert sorted(map(str, Index(whole).values())) == before


class Fails(SeedRun):
    """Seed 1 cannot be run."""

    def work(self):
        if self.seed == 1:
            raise RuntimeError("seed 1 is cursed")
        yield from super().work()


class Dies(SeedRun):
    """Seed 1 takes its process with it, once."""

    def work(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.seed == 1 and not (self.folder / "died").exists():
            (self.folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from super().work()


def by(kind):
    """The local engine with cells run by another class."""

    def engine(packs, driver):
        local([[sweeping.Job(job.config, job.run, job.seed, kind) for job in pack] for pack in packs], driver)

    return engine


def test_a_cell_that_fails_twice_is_marked_and_the_rest_goes_on(tmp_path):
    study = write_study(tmp_path / "study.toml", debias="none", seeds=3)
    assert sweep(study, tmp_path / "out", by(Fails), Silent()) == {"done": 2, "waiting": 0, "failed": 1}
    [failed] = (tmp_path / "out").glob("runs/*/seed-1/failed.json")
    assert json.loads(failed.read_text())["tries"] == 2
    assert "seed 1 is cursed" in json.loads(failed.read_text())["traceback"]
    status = droptop("status", tmp_path / "out").stdout
    assert "2 done, 0 running, 0 waiting, 1 failed" in status
    assert "failed: fashion er none, seed 1: RuntimeError: seed 1 is cursed" in status
    assert sweep(study, tmp_path / "out", local, Silent()) == {"done": 3, "waiting": 0, "failed": 0}  # mended
    assert not failed.exists()


def test_a_worker_that_dies_is_replaced(tmp_path):
    study = write_study(tmp_path / "study.toml", debias="none", seeds=3)
    assert sweep(study, tmp_path / "out", by(Dies), Silent()) == {"done": 3, "waiting": 0, "failed": 0}


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
    study = write_study(tmp_path / "study.toml", debias="none", limit=800, tasks=5, seeds=5, checkpoint_seconds=1.0)
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
    assert len(list(out.glob("runs/*/seed-*/result.json"))) < 5
    assert sweep(None, out, local, Silent())["done"] == 5
    assert sweep(study, tmp_path / "straight", local, Silent())["done"] == 5
    assert digests(out) == digests(tmp_path / "straight")


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.faults)])
def test_kill_minus_nine_of_a_sweep_or_a_worker(tmp_path, kills, capsys):
    """At random moments, the driver or one of its workers; then the bytes are those of an undisturbed study."""
    study, out = write_study(tmp_path / "study.toml", debias="none", limit=160, tasks=5, seeds=4), tmp_path / "out"
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


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    study = write_study(tmp_path / "study.toml")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadRequest, match="is a file"):
        sweep(study, tmp_path / "file", local, Silent())
    with pytest.raises(BadRequest, match="can be written"):
        sweep(study, Path("/proc/nothing/here"), local, Silent())
