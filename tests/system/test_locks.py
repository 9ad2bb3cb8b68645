"""Locks between processes: one holder, freed by its death, and asked about without waiting."""

import errno
import fcntl
import json
import os
import platform
import signal
import subprocess
import sys
import time

import pytest

from droptop.system import claims, locks
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


@pytest.fixture(params=[errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def without_locks(monkeypatch, request):
    """Be on a file system that has none, as some network file systems are."""

    def refuse(*_):
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(claims, "_tried", {})


def test_without_locks_one_process_has_a_folder(tmp_path, without_locks):
    folder, notes = tmp_path / "seed-0", []
    locks.note_without_locks(tmp_path / "config.toml", notes.append)
    assert notes == [f"{tmp_path} is on a file system without locks: work in it from one machine at a time"]
    with folder_lock(folder):
        assert is_locked(folder)
        with pytest.raises(Held) as error, locked(folder / ".lock", wait=0.2, patience=0.1):
            pass
        assert str(error.value) == (
            f"{folder} is being written by process {os.getpid()} on {platform.node()}; this file system has no locks: "
            f"if that process has ended, remove {folder / '.lock.claim'}"
        )
    assert not is_locked(folder)
    with folder_lock(folder):
        pass
    assert [path.name for path in folder.iterdir()] == [".lock"]


def test_a_machine_without_an_id_cannot_tell_that_it_was_started_anew(tmp_path, without_locks, monkeypatch):
    """As in containers, many of which have none."""
    here = claims._here()
    monkeypatch.setattr(claims, "_here", lambda: here | {"machine": None})
    claim = claims._this_process() | {"process": 1, "began": "then"}
    (tmp_path / ".lock").touch()
    for boot, is_held in ((here["boot"], False), ("another", True)):
        (tmp_path / ".lock.claim").write_text(json.dumps(claim | {"boot": boot}))
        assert is_locked(tmp_path) is is_held


def test_a_claim_is_void_once_its_process_has_ended_on_this_machine(tmp_path, without_locks):
    path = tmp_path / ".lock"
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    of_us = claims._this_process()
    for changed, is_held in (
        ({"process": ended.pid}, False),
        ({"began": "then"}, False),  # its number was given to another process since
        ({}, True),
        ({"process": ended.pid, "boot": "the last"}, False),  # the machine was started anew
        ({"process": ended.pid, "host": "another"}, True),  # nobody here can tell, from here on
        ({"process": ended.pid, "machine": "another of this name", "boot": "another"}, True),
        ({"process": ended.pid, "machine": None, "boot": "another"}, True),
        ({"process": ended.pid, "container": "another on this machine"}, True),
        ({"process": ended.pid, "boot": None}, True),
        ({"process": "7"}, True),
    ):
        entry = of_us | changed
        (tmp_path / ".lock.claim").write_text(json.dumps(entry))
        path.touch()
        assert is_locked(tmp_path) is is_held, entry
        if is_held:
            with pytest.raises(Held), locked(path, wait=0.1, patience=0.05):
                pass
        else:
            with locked(path, wait=0.1):
                assert is_locked(tmp_path)
    (tmp_path / ".lock.claim").write_text("")  # half written
    assert is_locked(tmp_path)


def test_a_claim_that_another_process_has_made_meanwhile_is_left_alone(tmp_path, without_locks, monkeypatch):
    path, place = tmp_path / ".lock", tmp_path / ".lock.claim"
    theirs = json.dumps({"process": 1, "host": "another", "began": "then"})
    place.write_text(json.dumps({"process": 999, "host": platform.node(), "began": "then"}))

    def void(found):
        place.write_text(theirs)  # another process was faster
        return True

    monkeypatch.setattr(claims, "_void", void)
    assert not claims.claim(path)
    claims.give_up(path)
    assert (place.read_text(), [each.name for each in tmp_path.iterdir()]) == (theirs, [".lock.claim"])


def test_a_file_system_is_asked_once(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(claims, "_tried", {})
    monkeypatch.setattr(claims, "_can_lock", lambda number: asked.append(number) or True)
    assert all(claims.has_locks(tmp_path / name) for name in "aab")
    assert len(asked) == 1
    assert claims.has_locks(tmp_path / "nowhere/a")  # locking it will say what is wrong
