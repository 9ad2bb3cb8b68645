"""Locks between processes: one holder, freed by its death, and asked about without waiting."""

import signal
import subprocess
import sys
import time

import pytest

from droptop.system import locks
from droptop.system.locks import Held, folder_lock, is_locked, locked

HOLD = """
import sys, time
from pathlib import Path
from droptop.system.locks import folder_lock
with folder_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path):
    """Return another process that holds the lock of a folder until it reads a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "seed-0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_lock_has_one_holder_at_a_time(tmp_path, holder):
    folder = tmp_path / "seed-0"
    assert is_locked(folder)
    with pytest.raises(Held, match=f"{folder} is being written by another process"), locked(folder / ".lock", wait=0.1):
        pass
    holder.communicate("go on\n", timeout=20)
    assert not is_locked(folder)
    with locked(folder / ".lock", wait=0.1):
        assert is_locked(folder)
    assert not is_locked(folder)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_lock_is_free_once_its_holder_is_killed(tmp_path, holder, how):
    holder.send_signal(how)
    holder.wait(20)
    assert (tmp_path / "seed-0/.lock").exists()  # the file stays, without meaning anything
    assert not is_locked(tmp_path / "seed-0")
    with folder_lock(tmp_path / "seed-0"):
        pass


def test_a_waiting_process_says_so_once_and_continues(tmp_path, holder, monkeypatch):
    monkeypatch.setattr(locks.locked.__wrapped__, "__defaults__", (30.0, 0.0, lambda: None))
    notes = []

    def note(text):
        notes.append(text)
        holder.communicate("go on\n", timeout=20)

    with folder_lock(tmp_path / "seed-0", note):
        assert is_locked(tmp_path / "seed-0")
    assert notes == [f"{tmp_path / 'seed-0'} is being written by another process; waiting for it up to 30 s"]


def test_waiting_ends_after_the_given_time(tmp_path, holder):
    began, waits = time.monotonic(), []
    with (
        pytest.raises(Held),
        locked(tmp_path / "seed-0/.lock", wait=0.4, patience=0.1, waiting=lambda: waits.append(time.monotonic())),
    ):
        pass
    assert 0.3 < time.monotonic() - began < 10
    assert len(waits) == 1


def test_an_error_inside_frees_the_lock(tmp_path):
    with pytest.raises(ZeroDivisionError), folder_lock(tmp_path / "new/seed-0"):
        raise ZeroDivisionError
    assert not is_locked(tmp_path / "new/seed-0")


def test_is_locked_makes_no_file(tmp_path):
    assert not is_locked(tmp_path)
    assert not is_locked(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []
