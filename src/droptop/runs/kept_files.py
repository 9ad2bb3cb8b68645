"""Copies of the user's own files in a run folder, by which it goes on where the files themselves are gone or changed.

    OUT/files/my_method.py    byte for byte the file that the run began with

environment.json says where each file was, and its SHA-256. To execute a file that came with a folder is a risk: it is
done only where the user says so (`trust.py`).
"""

import hashlib
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from droptop.runs.noted import environments
from droptop.system import user_files
from droptop.system.files import sha256, write_changed

FOLDER = "files"


class Copy(NamedTuple):
    """Say of a copy what it is called in the folder, its SHA-256, and where the user's own file was."""

    name: str
    sha256: str
    path: str

    def place(self, run: Path) -> Path:
        """Return the path of the copy."""
        return run / FOLDER / Path(self.name).name

    def is_same(self, file: Path) -> bool:
        """Return whether a file is there and has the bytes that were copied."""
        return file.is_file() and sha256(file) == self.sha256


def keep(run: Path, names: Iterable[str]) -> str:
    """Copy the user's files among some names into a run folder; return what environment.json notes of them.

    It is text, as other values are, so that earlier versions can show the folder. Of two files with one name, the
    second gets a number: mine.py, mine-2.py.
    """
    copies: dict[str, Copy] = {}
    for path in dict.fromkeys(name.partition(":")[0] for name in names if user_files.is_file(name)):
        file = user_files.place(path)
        if not file.is_file():  # of a finished run
            continue
        data, stem, number = file.read_bytes(), Path(path).stem, 1
        while (name := f"{stem}{'' if number == 1 else f'-{number}'}.py") in copies:
            number += 1
        copies[name] = Copy(name, hashlib.sha256(data).hexdigest(), path)
        (run / FOLDER).mkdir(exist_ok=True)
        write_changed(copies[name].place(run), data)
    return noted(copies.values())


def noted(copies: Iterable[Copy]) -> str:
    """Return what environment.json notes of copies."""
    return shlex.join(word for copy in copies for word in copy)


def kept(run: Path) -> list[Copy]:
    """Return the copies that a run folder notes; [] of an older folder, or one without files of the user's own."""
    try:
        words = shlex.split(environments(run)[0]["files"])
        return [Copy(*words[start : start + 3]) for start in range(0, len(words), 3)]
    except (LookupError, ValueError, TypeError, AttributeError):
        return []
