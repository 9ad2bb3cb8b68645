"""Several commands in one folder, a folder that goes away, a clock that goes back, and a file system without locks."""

import errno
import fcntl
import itertools
import os
import shutil
import time
from pathlib import Path

import pytest

from faults.commands import Running, run
from faults.folders import RUN, SMALL, harmed, straight, whole
from faults.injection import Fault

pytestmark = pytest.mark.faults
LONGER = [*RUN, "--limit", "640"]
METRICS = "seed-0/metrics.jsonl"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return what a run leaves that nobody disturbed."""
    return straight(tmp_path_factory.mktemp("run"), RUN)[0]


def wait_for(there: Path, running: Running) -> None:
    while not (there.exists() and there.stat().st_size):
        assert running.process.is_alive()
        time.sleep(0.01)


def one_line(done, *codes):
    """Check that a command said in one line what was wrong, if anything was."""
    assert "Traceback" not in done.out + done.err, done
    assert done.code in codes, done
    assert len(done.err.splitlines()) == (done.code != 0), done


@pytest.mark.parametrize("attempt", range(4))
def test_two_resumes_at_once_make_one_run(tmp_path, files, fault_counts, attempt):
    at = [("open", "seed-0/maps/images.safetensors.part"), ("fsync", "seed-0/checkpoints"), ("rename", "summary.json")]
    call, path = at[attempt % len(at)]
    out, _ = harmed(tmp_path, RUN, Fault(call, path, 1, "kill all"))
    both = [Running(tmp_path / f"said-{number}", "resume", out) for number in range(2)]
    for done in [each.wait() for each in both]:
        one_line(done, 0)
    assert whole(out) == files
    fault_counts.add("two resumes of one folder at once")


def test_status_and_report_at_any_moment_harm_nothing(tmp_path, fault_counts):
    out = tmp_path / "out"
    expected = straight(tmp_path / "alone", LONGER)[0]
    running = Running(tmp_path / "said", *LONGER, "--out", out)
    looks = 0
    while running.process.is_alive():
        for looking in ("status", "report"):
            done = run(tmp_path / "looking", looking, out)
            one_line(done, 0, 2)
            assert done.code == 0 or "is not a run folder" in done.err or "is not a folder" in done.err, done
            looks += done.code == 0
    assert running.wait().code == 0
    (out / "report.html").unlink()
    assert whole(out) == expected
    assert looks > 2
    fault_counts.add("looks at a folder while it runs", looks)


@pytest.mark.parametrize("gone", ["", "seed-0", "seed-0/checkpoints", "seed-0/maps"])
def test_a_folder_that_is_deleted_while_it_runs(tmp_path, fault_counts, gone):
    out = tmp_path / "out"
    running = Running(tmp_path / "said", *LONGER, "--out", out)
    wait_for(out / METRICS, running)
    deadline = time.monotonic() + 20
    while (out / gone).exists() and time.monotonic() < deadline:
        shutil.rmtree(out / gone, ignore_errors=True)
    done = running.wait()
    one_line(done, 0, 1)
    if gone in ("", "seed-0"):
        assert done.code == 1
        assert "No such file or directory" in done.err
        assert not (out / gone).exists()  # nobody makes a folder anew that its owner removed
    fault_counts.add("folders deleted while a run was at work in them")


def clock_back() -> None:
    """Set the clock of this process back by a year, again and again."""
    now, calls = time.time, itertools.count()
    time.time = lambda: now() - 365 * 86400 * (next(calls) // 3 % 3)
    time.time_ns = lambda: int(1e9 * time.time())


def test_a_clock_that_goes_back(tmp_path, files, fault_counts):
    out = tmp_path / "out"
    one_line(run(tmp_path / "said", *RUN, "--out", out, prepare=clock_back), 0)
    assert whole(out) == files
    for path in out.rglob("*"):
        os.utime(path, (time.time() + 1e8, time.time() + 1e8))  # written when the clock was ahead
    for command in ("status", "resume", "report"):
        one_line(run(tmp_path / "said", command, out, prepare=clock_back), 0)
    fault_counts.add("commands under a clock that goes back", 4)


def no_locks() -> None:
    """Let every lock fail, as on a file system without any."""

    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    fcntl.flock = refuse


def test_without_locks_a_run_is_whole_and_has_one_writer(tmp_path, files, fault_counts):
    out = tmp_path / "out"
    done = run(tmp_path / "said", *RUN, "--out", out, prepare=no_locks)
    one_line(done, 0)
    assert done.out.count("is on a file system without locks: work in it from one machine at a time") == 1
    assert whole(out) == files
    shutil.rmtree(out)
    running = Running(tmp_path / "said", *LONGER, "--seeds", "1", "--out", out, prepare=no_locks)
    wait_for(out / METRICS, running)
    other = Running(tmp_path / "other", "resume", out, prepare=no_locks)
    one_line(running.wait(), 0)
    other = other.wait()
    one_line(other, 0)
    assert "is being written by another process; waiting for it" in other.out
    fault_counts.add("commands on a file system without locks", 3)


def test_without_locks_a_kill_is_mended_on_the_same_machine_alone(tmp_path, files, fault_counts):
    out = tmp_path / "out"
    running = Running(tmp_path / "said", *RUN, *SMALL, "--limit", "64", "--out", out, prepare=no_locks)
    wait_for(out / METRICS, running)
    os.killpg(running.process.pid, 9)
    running.process.join()
    claim = out / "seed-0/.lock.claim"
    assert claim.exists()
    one_line(run(tmp_path / "said", "resume", out, prepare=no_locks), 0)
    assert whole(out) == files
    assert not claim.exists()
    fault_counts.add("kill -9 on a file system without locks")
