"""The user's list of their own files: what is on it, who may add to it, and what becomes of it when things go wrong."""

import importlib.util
import os
import py_compile
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import pytest

from droptop import BadRequest
from droptop.system import trusted_files, user_files
from droptop.system.trusted_files import OwnFile, Untrusted, check, known, list_file, module_files, remember, vouch
from droptop.trackers import Tracker, find


@pytest.fixture
def own_list(tmp_path, monkeypatch):
    """Return a list of this test's own, which is not there yet, for a process that has admitted nothing."""
    monkeypatch.setenv("DROPTOP_TRUSTED", str(tmp_path / "state/trusted.json"))
    monkeypatch.setattr(trusted_files, "_admitted", set())
    return tmp_path / "state/trusted.json"


def test_by_default_it_lies_with_the_state_of_the_users_programs(monkeypatch, tmp_path):
    monkeypatch.delenv("DROPTOP_TRUSTED")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert list_file() == tmp_path / "droptop/trusted.json"


def test_a_file_is_known_by_its_path_and_its_bytes(own_list, tmp_path):
    mine, copy = tmp_path / "mine.py", tmp_path / "copy.py"
    mine.write_text("x = 1\n")
    copy.write_text("x = 1\n")
    user_files.named(f"{mine}:Mine")
    began = OwnFile(str(mine), sha256(b"x = 1\n").hexdigest())
    assert known().files == {began}
    check(began, "method")
    for other in (OwnFile(str(copy), began.sha256), OwnFile(str(mine), sha256(b"x = 2\n").hexdigest())):
        with pytest.raises(Untrusted, match=rf"^--method would run {other.path} \(SHA-256 {other.sha256[:12]}\)"):
            check(other, "method")
    mine.write_text("x = 2\n")
    user_files.named(str(mine))  # what was named before stays so: a run that began with it goes on
    assert known().files == {began, OwnFile(str(mine), sha256(b"x = 2\n").hexdigest())}


def test_what_is_named_in_parts_is_found(tmp_path):
    names = [str(tmp_path / name) for name in ("a.py", "b+c.py", "d.py", "e.py")]
    text = f"droptop+{names[0]}:Mine,{names[2]}"
    assert user_files.paths_in(text)[-2:] == [names[0], names[2]]
    assert names[1] in user_files.paths_in(names[1])
    assert user_files.paths_in(f"method={names[3]}")[-1] == names[3]
    assert user_files.paths_in("droptop+robust,er") == []


def test_commands_that_add_at_once_lose_nothing(own_list):
    """A list that is read, changed and written without a lock keeps the last writer's file alone."""
    files = [OwnFile(f"/f{number}.py", str(number)) for number in range(24)]
    with ThreadPoolExecutor(8) as several:
        list(several.map(lambda file: remember([file], [f"folder:{file.path}"]), files))
    assert known().files == set(files)
    assert len(known().places) == 24
    assert not list(own_list.parent.glob("*.part"))


def test_it_is_written_whole_or_not_at_all(own_list, monkeypatch):
    remember([OwnFile("/a.py", "1")])
    before = own_list.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("droptop.system.files.os.fsync", full)
    with pytest.warns(UserWarning, match=r"trusted\.json, the list of .*, cannot be written: No space left"):
        vouch([OwnFile("/b.py", "2")])
    check(OwnFile("/b.py", "2"), "method")  # the command that names it goes on
    assert own_list.read_bytes() == before


def test_a_place_where_nobody_may_write_is_noted(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DROPTOP_TRUSTED", str(tmp_path / "file/trusted.json"))
    with pytest.warns(UserWarning, match="cannot be read: Not a directory"):
        vouch([OwnFile("/b.py", "2")])
    check(OwnFile("/b.py", "2"), "method")


@pytest.mark.parametrize(
    "text", ["", "[]", '{"files": []}', '{"files": {"a": 1}, "places": []}', "[" * 100_000, "\xff"]
)
def test_a_damaged_list_is_named_and_left_as_it_is(own_list, text):
    own_list.parent.mkdir()
    own_list.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadRequest, match=r"trusted\.json, the list of .* it is damaged; remove it"):
        known()
    with pytest.warns(UserWarning, match="it is damaged"):
        remember([OwnFile("/a.py", "1")])
    assert own_list.read_bytes() == text.encode("latin-1")


def test_the_bytes_that_were_checked_are_those_that_run(own_list, tmp_path, monkeypatch):
    """Somebody may change the file between the two."""
    mine, mark = tmp_path / "mine.py", tmp_path / "mark"
    mine.write_text("from droptop.methods import ER\n\nclass Mine(ER):\n    pass\n")
    user_files.named(str(mine))
    real = trusted_files.check

    def change_after(*given):
        real(*given)
        mine.write_text(f"open({str(mark)!r}, 'w')\n" + mine.read_text())

    monkeypatch.setattr(trusted_files, "check", change_after)
    assert user_files.load(str(mine), object, "method").__name__ == "Mine"
    assert not mark.exists()


def test_the_files_of_a_module_are_found_without_importing_it(own_list, tmp_path, monkeypatch):
    mark = tmp_path / "mark"
    for name in ("outer/__init__.py", "outer/inner/__init__.py", "outer/inner/told.py"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(f"with open({str(mark)!r}, 'a') as mark:\n    mark.write(__name__ + ' ')\n")
    (tmp_path / "outer/inner/told.py").write_text("from droptop import Tracker\n\nclass Mine(Tracker):\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    files = module_files("outer.inner.told")
    assert [os.path.relpath(file.path, tmp_path) for file in files] == [
        "outer/__init__.py",
        "outer/inner/__init__.py",
        "outer/inner/told.py",
    ]
    with pytest.raises(Untrusted, match=r"--log would run .*outer/__init__\.py"):
        find("outer.inner.told:Mine")
    trusted_files.admit(files[:2])
    with pytest.raises(Untrusted, match=r"--log would run .*told\.py"):
        find("outer.inner.told:Mine")
    assert not mark.exists()
    trusted_files.admit(files)
    assert issubclass(find("outer.inner.told:Mine"), Tracker)
    assert mark.read_text() == "outer outer.inner "
    for name in ("outer", "outer.inner", "outer.inner.told"):
        del sys.modules[name]
    assert (module_files("sys"), module_files("no.such"), module_files("outer.none")) == ([], [], [])


def test_what_is_compiled_beside_a_module_is_not_executed(own_list, tmp_path, monkeypatch):
    """Python takes such a file for the module's own, without a look at its source."""
    mark, source, evil = tmp_path / "mark", tmp_path / "told_here.py", tmp_path / "evil.py"
    source.write_text("from droptop import Tracker\n\nclass Mine(Tracker):\n    pass\n")
    evil.write_text(f"open({str(mark)!r}, 'w').close()\n{source.read_text()}")
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(evil), importlib.util.cache_from_source(str(source)), invalidation_mode=unchecked)
    monkeypatch.syspath_prepend(str(tmp_path))
    trusted_files.admit(module_files("told_here"))
    assert issubclass(find("told_here:Mine"), Tracker)
    del sys.modules["told_here"]
    assert not mark.exists()
