"""Files that are whole or as they were, and that nobody touches without need."""

import errno
import fcntl
import json
import os
import threading

import pytest

from droptop.system.files import remove_left_over, write_atomic, write_changed, write_json, write_new


@pytest.fixture
def syncs(monkeypatch):
    """Return the names of the files that are synced, in turn."""
    synced, real = [], os.fsync

    def fsync(number):
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{number}")))
        real(number)

    monkeypatch.setattr("os.fsync", fsync)
    return synced


def test_a_file_is_synced_before_its_name_and_then_its_folder(tmp_path, syncs):
    path = tmp_path / "result.json"
    path.write_bytes(b"old")
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert syncs == ["result.json.part", tmp_path.name]
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.replace"])
def test_an_error_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch, call):
    path = tmp_path / "result.json"
    path.write_bytes(b"old")

    def fails(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(call, fails)
        with pytest.raises(OSError, match="No space left"):
            write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_an_equal_file_is_left_alone(tmp_path, syncs):
    path = tmp_path / "config.toml"
    write_changed(path, b"same")
    before, count = path.stat(), len(syncs)
    write_changed(path, b"same")
    assert (path.stat().st_ino, path.stat().st_mtime_ns, len(syncs)) == (before.st_ino, before.st_mtime_ns, count)
    write_changed(path, b"other")
    assert path.read_bytes() == b"other"
    assert path.stat().st_ino != before.st_ino  # another file under the name


def test_json_comes_back_and_nan_is_refused(tmp_path):
    path = tmp_path / "value.json"
    value = {"a": [1, 2.5, None, True], "b": {"c": "café"}}
    write_json(path, value)
    assert json.loads(path.read_text()) == value
    assert path.read_text().endswith("}\n")
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write_json(path, {"loss": bad})
    assert json.loads(path.read_text()) == value


def test_a_new_file_is_whole_and_has_one_author(tmp_path, monkeypatch):
    path = tmp_path / "config.toml"
    write_new(path, b"mine")
    with pytest.raises(FileExistsError):
        write_new(path, b"yours")

    def no_links(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", no_links)
    with pytest.raises(FileExistsError):
        write_new(path, b"yours")
    assert path.read_bytes() == b"mine"
    write_new(tmp_path / "other", b"whole")
    assert (tmp_path / "other").read_bytes() == b"whole"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.toml", "other"]


@pytest.mark.parametrize("with_locks", [True, False])
def test_two_writers_of_a_file_leave_what_one_of_them_wrote(tmp_path, monkeypatch, with_locks):
    """Both begin before either ends; without a lock one would cut off, or rename, what the other is writing."""
    path, flock = tmp_path / "summary.json", fcntl.flock

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock if with_locks else refuse)
    beside = tmp_path / ("summary.json.part" if with_locks else f"summary.json.{os.getpid()}.part")
    beside.write_bytes(b"of a process that was killed, and longer")
    if with_locks:
        writers = [threading.Thread(target=write_atomic, args=(path, bytes([n]) * 100_000)) for n in range(8)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert path.read_bytes() in [bytes([n]) * 100_000 for n in range(8)]
    else:
        write_atomic(path, b"new")
        assert path.read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]


@pytest.fixture
def with_two_names(tmp_path, monkeypatch):
    """A file that a kill has left with the name under which it was written, too."""
    with monkeypatch.context() as killed:
        killed.setattr("pathlib.Path.unlink", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            write_new(tmp_path / "a", b"old")
    assert (tmp_path / "a").samefile(tmp_path / "a.part")
    return tmp_path / "a"


def test_a_file_that_a_kill_left_with_two_names_stays_whole(with_two_names, monkeypatch):
    """What is written under the second name would be in the file before it is whole."""

    def fails(_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as failing:
        failing.setattr(os, "fsync", fails)
        with pytest.raises(OSError, match="Input/output error"):
            write_atomic(with_two_names, b"new")
    assert with_two_names.read_bytes() == b"old"
    write_atomic(with_two_names, b"new")
    assert [(path.name, path.read_bytes()) for path in with_two_names.parent.iterdir()] == [("a", b"new")]


def test_the_second_name_is_removed_and_no_other_file_beside(with_two_names, tmp_path):
    remove_left_over(with_two_names)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"old")]
    (tmp_path / "a.part").write_bytes(b"of another")
    remove_left_over(with_two_names)
    assert (tmp_path / "a.part").exists()
    remove_left_over(tmp_path / "nothing")
