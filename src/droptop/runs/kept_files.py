"""Copies of the user's own files in a run folder, by which it goes on where the files themselves are gone or changed.

    OUT/files/my_method.py    byte for byte the file that the run began with

environment.json says where each file was, and its SHA-256. To execute a file that came with a folder is a risk: it is
done only where the user says so, by `--trust` or `trust=True`. Commands that only look execute none.
"""

import hashlib
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from droptop.errors import BadRequest
from droptop.runs.noted import environments
from droptop.system import user_files
from droptop.system.files import write_changed
from droptop.system.handed import Gone
from droptop.system.user_files import Changed

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
        return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == self.sha256


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


@contextmanager
def standing_in(folder: Path, trust: bool, again: str) -> Iterator[None]:
    """Let copies stand in, inside this context, for files of the user's own that are gone or have changed, on trust.

    Args:
        folder: Folder of a run, a comparison, or one of their seeds.
        trust: Whether the user has said that the copies may be executed.
        again: What the user does to say so, for the message.

    Raises:
        BadRequest: A file is needed of which the folder has a copy, but the user has not said so, or the copy is not
            the one that it began with.
    """
    run = folder if (folder / "config.toml").is_file() else folder.absolute().parent
    whole = [copy for copy in lost(run) if copy.is_same(copy.place(run))] if trust else []
    with user_files.instead({copy.path: str(copy.place(run).absolute()) for copy in whole}):
        try:
            yield
        except (Gone, Changed) as error:
            missing = [copy for copy in lost(run) if copy not in whole]
            if not any(copy.path in str(error) for copy in missing):
                raise
            raise BadRequest(why_not(run, missing, again)) from None


def lost(run: Path) -> list[Copy]:
    """Return the copies of files that are gone, or are not what they were."""
    return [copy for copy in kept(run) if not copy.is_same(Path(copy.path))]


def why_not(run: Path, missing: list[Copy], again: str) -> str:
    """Return in one line which files a folder needs, and how to say that their copies may be executed, if they may."""
    is_gone = not any(Path(copy.path).exists() for copy in missing)
    one = len(missing) == 1
    files, places = (
        ", ".join(map(str, several))
        for several in ([Path(copy.path).name for copy in missing], [copy.place(run) for copy in missing])
    )
    fate = "gone" if is_gone else "not what it began with" if one else "gone or not what it began with"
    needs = f"{run} needs {files}, which {'is' if one else 'are'} {fate}"
    for copy in missing:
        if not copy.is_same(copy.place(run)):
            state = "has another SHA-256 than" if copy.place(run).is_file() else "is not there, which was"
            return f"{needs}, and {copy.place(run)} {state} the copy of the file that it began with"
    are, it = ("is the copy", "it") if one else ("are the copies", "them")
    return f"{needs}; {places} {are} of what it began with: read {it}, then {again} runs {it}"
