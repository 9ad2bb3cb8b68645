"""Which Python files of the user's own may be executed here: those that the user has named.

A file is known by its path and the SHA-256 of its bytes. What the user names, on a command line or in Python, may be
executed from then on: this process knows it, and so does a list of the user's, in the folder where the system keeps
the state of programs, or in the file that $DROPTOP_TRUSTED names. What only a run folder or a TOML file names has to
be admitted first (`runs/trust.py`). `user_files.py` executes nothing else.

The list has places too, folders of images and files of weights: they are read and never executed, and are only noted
where they are new.
"""

import hashlib
import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Iterable
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

import platformdirs

from droptop.errors import BadRequest, DroptopError
from droptop.system.files import sha256, write_json
from droptop.system.json_files import read_json
from droptop.system.locks import locked

LIST = "DROPTOP_TRUSTED"  # in the environment: the file of the list


class OwnFile(NamedTuple):
    """Say which bytes a file of the user's own has."""

    path: str
    sha256: str

    def __str__(self) -> str:
        """Return the path and enough of the hash to compare by eye."""
        return f"{self.path} (SHA-256 {self.sha256[:12]})"


class SourceLoader(SourceFileLoader):
    """Import the bytes that were checked, and not what a cache beside the file has compiled: that may be anything."""

    def __init__(self, fullname: str, path: str, data: bytes) -> None:
        super().__init__(fullname, path)
        self.data = data

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of these bytes."""
        code: CodeType = self.source_to_code(self.data, self.path)
        return code


class Untrusted(BadRequest):
    """A file that nobody has named here."""


_admitted: set[OwnFile] = set()  # what this process may execute


def list_file() -> Path:
    """Return the file of the user's list: $DROPTOP_TRUSTED, else in the user's state folder as the system has it."""
    if chosen := os.environ.get(LIST):
        return Path(chosen)
    return platformdirs.user_state_path("droptop", appauthor=False) / "trusted.json"


class Known(NamedTuple):
    """Hold what the user's list has."""

    files: set[OwnFile]
    places: set[str]


def known() -> Known:
    """Return the user's list, empty where there is none; raise BadRequest if it is damaged."""
    path = list_file()
    try:
        read = read_json(path)
        files = {OwnFile(file, sha256) for file, hashes in read["files"].items() for sha256 in hashes}
        return Known(files, set(read["places"]))
    except FileNotFoundError:
        return Known(set(), set())
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        why = getattr(error, "strerror", None) or "it is damaged"
        raise BadRequest(
            f"{path}, the list of the files that you have named, cannot be read: {why}; remove it, and what older runs "
            "name is asked about again"
        ) from None


def remember(files: Iterable[OwnFile] = (), places: Iterable[str] = ()) -> None:
    """Add files and places to the user's list; note it where it cannot be read or written, and go on without."""
    files, places, path = set(files), set(places), list_file()
    if not files and not places:
        return
    try:
        before = known()
        if files <= before.files and places <= before.places:
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(path.with_name(path.name + ".lock")):
            before = known()  # another command may have added to it
            hashes: dict[str, list[str]] = {}
            for file in sorted(before.files | files):
                hashes.setdefault(file.path, []).append(file.sha256)
            write_json(path, {"files": hashes, "places": sorted(before.places | places)})
    except BadRequest as error:
        warnings.warn(str(error), stacklevel=2)
    except (OSError, DroptopError) as error:
        why = getattr(error, "strerror", None) or error
        warnings.warn(f"{path}, the list of the files that you have named, cannot be written: {why}", stacklevel=2)


def own_file(path: str, source: Path | None = None) -> OwnFile | None:
    """Return what is known of a file by, or of another source of its bytes; None where it cannot be read."""
    try:
        return OwnFile(path, sha256(source or Path(path)))
    except OSError:
        return None


def admit(files: Iterable[OwnFile]) -> None:
    """Let this process execute files."""
    _admitted.update(files)


def vouch(files: Iterable[OwnFile]) -> None:
    """Let this process execute files that the user has named, and add them to the user's list."""
    named = set(files)
    admit(named)
    remember(named)


def admitted(paths: Iterable[str]) -> list[OwnFile]:
    """Return what this process may execute of some paths, for processes that work for it."""
    wanted = set(paths)
    return sorted(file for file in _admitted if file.path in wanted)


def check(file: OwnFile, option: str) -> None:
    """Raise Untrusted unless this process may execute a file, which an option names."""
    if file not in _admitted:
        raise Untrusted(
            f"--{option} would run {file}, which is not among the files that you have named: read it, then name it "
            "yourself"
        )


# -- Modules, by which trackers are named -----------------------------------------------------------------------------


def module_files(name: str) -> list[OwnFile]:
    """Return the files that importing a module executes first: its own and those of its packages; imports nothing.

    Return [] for what is built into Python or is not there.
    """
    files, within, parts = list[OwnFile](), None, name.split(".")
    for count in range(1, len(parts) + 1):
        if (spec := _spec(".".join(parts[:count]), within)) is None:
            return []
        within = spec.submodule_search_locations
        if spec.has_location and spec.origin is not None and (file := own_file(spec.origin)) is not None:
            files.append(file)
    return files


def _spec(name: str, within: Iterable[str] | None) -> ModuleSpec | None:
    """Return where Python would find a module, without importing the package that it is in."""
    finders = (getattr(finder, "find_spec", None) for finder in sys.meta_path)
    found = (find(name, within) for find in finders if find is not None)
    return next((spec for spec in found if spec is not None), None)


def import_module(name: str, option: str) -> ModuleType:
    """Import a module and the packages that it is in, from the very bytes that this process may execute.

    What Python has compiled beside them is not read. Raise Untrusted, before anything is executed, if nobody has
    vouched for one of them, and ImportError if it is not there.
    """
    if name in sys.modules:
        return sys.modules[name]
    for file in module_files(name):
        check(file, option)
    outer, _, last = name.rpartition(".")
    if not outer:
        return _imported(name, None, option)
    package = import_module(outer, option)
    module = _imported(name, getattr(package, "__path__", []), option)
    setattr(package, last, module)
    return module


def _imported(name: str, within: Iterable[str] | None, option: str) -> ModuleType:
    """Import a module whose package is imported."""
    spec = _spec(name, within)
    if spec is None or spec.origin is None or not isinstance(spec.loader, SourceFileLoader):
        return importlib.import_module(name)  # not there, or not of Python's source
    data = Path(spec.origin).read_bytes()
    check(OwnFile(spec.origin, hashlib.sha256(data).hexdigest()), option)
    spec.loader = SourceLoader(name, spec.origin, data)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return sys.modules.get(name, module)
