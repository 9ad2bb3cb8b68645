"""What a folder or a TOML file names is executed only if the user has named it before, or says so now by `--trust`.

A file is the user's if its path and its SHA-256 are on the user's list (`system/trusted_files.py`) and, in a run
folder, if it is the one that the run began with. Where that one is gone or has changed, the folder's copy of it
(`kept_files.py`) stands in, on trust. Otherwise one line says what would be run. Commands that only look run nothing.

Folders and files of data that only a folder names are read, and noted the first time.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from droptop import trackers
from droptop.errors import BadRequest
from droptop.nets.weights import RANDOM
from droptop.runs.folder import read_request
from droptop.runs.kept_files import Copy, kept
from droptop.system import trusted_files, user_files
from droptop.system.handed import Gone
from droptop.system.trusted_files import OwnFile, Untrusted, own_file
from droptop.system.user_files import Changed

FILES = ("data", "method", "methods", "debias", "model", "log", "against")  # options whose values may name Python files
PLACES = ("root", "weights", "image_folder")  # options whose values are places; data may be one, of these kinds:
KINDS = ("folder", "csv", "hf")
NOWHERE = "/"  # is no file
Options = Mapping[str, Any]  # by path, or by name; a list has several values


class Kept(NamedTuple):
    """Say of a copy in a run folder what it is a copy of, and where it is."""

    copy: Copy
    place: Path

    @property
    def is_whole(self) -> bool:
        """Return whether it is there, and what the run began with."""
        return self.copy.is_same(self.place)

    @property
    def file(self) -> OwnFile:
        """Return what is known of it, by its own path."""
        return OwnFile(str(self.place), self.copy.sha256)


def texts(options: Options, wanted: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield every text that is a value of one of these options, with the option's name."""
    for path, value in options.items():
        option = path.rpartition(".")[2].replace("-", "_")
        for text in value if isinstance(value, list | tuple) else [value]:
            if option in wanted and isinstance(text, str | Path):
                yield option, str(text)


def paths_of(options: Options, without: Sequence[str] = ()) -> list[str]:
    """Return the paths of the Python files that options name, but for some of the options; import nothing."""
    paths = list[str]()
    for option, text in texts(options, [option for option in FILES if option not in without]):
        paths += user_files.paths_in(text)
        paths += [file.path for file in trackers.files(text)] if option == "log" else []
    return list(dict.fromkeys(paths))


def places_of(options: Options) -> list[str]:
    """Return the places of data that options name."""
    of_data = [text for _, text in texts(options, ["data"]) if text.partition(":")[0] in KINDS]
    return [*of_data, *(text for _, text in texts(options, PLACES) if text != RANDOM)]


def named(options: Options) -> None:
    """Vouch for the files that the user names by options: they may be executed, here and from then on."""
    trusted_files.vouch(
        file for path in paths_of(options) if (file := own_file(path, user_files.place(path))) is not None
    )


def admit(where: Path, options: Iterable[Options], trust: bool, again: str) -> None:
    """Let this process execute the files that a TOML file names, if the user has named them before or trusts them now.

    Raise Untrusted otherwise: in one line, what would be run, and that `again` runs it.
    """
    paths = list(dict.fromkeys(path for each in options for path in paths_of(each)))
    _admit(where, [file for path in paths if (file := own_file(path)) is not None], [], trust, again)


def _admit(where: Path, files: Sequence[OwnFile], copies: Sequence[Kept], trust: bool, again: str) -> None:
    """Admit files, if all are known or trusted now; a refusal names the copies too that would be run then."""
    needed = [file for file in files if file not in trusted_files.admitted([file.path])]
    unknown = [file for file in needed if file not in trusted_files.known().files] if needed else []
    if unknown and not trust:
        shown = [*unknown, *(copy.file for copy in copies)]
        are, them = ("is", "it") if len(shown) == 1 else ("are", "them")
        raise Untrusted(
            f"{where} would run {', '.join(map(str, shown))}, which {are} not among the files that you have named: "
            f"read {them}, then {again} runs {them}"
        )
    trusted_files.admit(needed)
    trusted_files.remember(unknown)
    trusted_files.admit(OwnFile(copy.copy.path, copy.copy.sha256) for copy in copies if trust)


@contextmanager
def trusted(folder: Path, trust: bool, again: str, without: Sequence[str] = ()) -> Iterator[None]:
    """Let what a run folder names be executed inside this context, as far as the user has named or trusts it.

    Args:
        folder: Folder of a run, a comparison, or one of their seeds.
        trust: Whether the user has said that what the folder names may be executed.
        again: What the user does to say so, for the message.
        without: Options whose files are not needed.

    Raises:
        BadRequest: A file is needed that the user has not named, or of which the folder has a copy that the user has
            not trusted, or a copy that is not the one that it began with. Nothing was executed.
    """
    run = folder if (folder / "config.toml").is_file() else folder.absolute().parent
    options: list[Options] = []
    if (run / "config.toml").is_file():  # others are refused by whoever reads them
        options = [arm.options for arm in read_request(run).arms]
    note_places(run, options, without)
    copies = [Kept(copy, copy.place(run)) for copy in kept(run)]
    with executing(run, options, copies, trust, again, without):
        yield


@contextmanager
def executing(
    where: Path,
    options: Iterable[Options],
    copies: Sequence[Kept],
    trust: bool,
    again: str,
    without: Sequence[str] = (),
) -> Iterator[None]:
    """Let what options name be executed inside this context, as `trusted` does for a folder with these copies."""
    files, lost = list[OwnFile](), list[Kept]()
    by_path = {each.copy.path: each for each in copies}
    for path in dict.fromkeys(path for each in options for path in paths_of(each, without)):
        now, began = own_file(path), by_path.get(path)
        just_named = now is not None and now in trusted_files.admitted([path])
        if began is not None and not just_named and (now is None or now.sha256 != began.copy.sha256):
            lost.append(began)
        elif now is not None:
            files.append(now)
    whole = [each for each in lost if each.is_whole]
    _admit(where, files, whole, trust, again)
    places = {each.copy.path: str(each.place.absolute()) if trust and each in whole else NOWHERE for each in lost}
    with user_files.instead(places):
        try:
            yield
        except (Gone, Changed) as error:
            missing = [each for each in lost if not (trust and each in whole)]
            if not any(each.copy.path in str(error) for each in missing):
                raise
            raise BadRequest(why_not(where, missing, again)) from None


def why_not(where: Path, missing: Sequence[Kept], again: str) -> str:
    """Return in one line which files a folder needs, and how to say that their copies may be executed, if they may."""
    is_gone = not any(Path(each.copy.path).exists() for each in missing)
    one = len(missing) == 1
    files = ", ".join(Path(each.copy.path).name for each in missing)
    fate = "gone" if is_gone else "not what it began with" if one else "gone or not what it began with"
    needs = f"{where} needs {files}, which {'is' if one else 'are'} {fate}"
    for each in missing:
        if not each.is_whole:
            state = "has another SHA-256 than" if each.place.is_file() else "is not there, which was"
            return f"{needs}, and {each.place} {state} the copy of the file that it began with"
    are, it = ("is the copy", "it") if one else ("are the copies", "them")
    shown = ", ".join(str(each.file) for each in missing)
    return f"{needs}; {shown} {are} of what it began with: read {it}, then {again} runs {it}"


# -- Places -----------------------------------------------------------------------------------------------------------


def note_places(folder: Path, options: Iterable[Options], without: Sequence[str] = ()) -> None:
    """Note the places of data outside of a folder that only the folder names, the first time; then they are known.

    Without data, only weights are read.
    """
    read = [
        place
        for each in options
        for place in places_of(
            {path: value for path, value in each.items() if "data" not in without or path == "weights"}
        )
    ]
    outside = [place for place in dict.fromkeys(read) if not is_within(folder, place)]
    if new := [place for place in outside if place not in trusted_files.known().places] if outside else []:
        warnings.warn(f"{folder} reads {', '.join(new)}, which you have not named here before", stacklevel=2)
        trusted_files.remember(places=new)


def is_within(folder: Path, place: str) -> bool:
    """Return whether a place is in a folder; what is fetched from the hub is not."""
    kind, _, path = place.partition(":")
    if kind == "hf" and not Path(path).is_absolute():
        return False
    return Path(path if kind in KINDS else place).resolve().is_relative_to(folder.resolve())


def remember_places(options: Iterable[Options]) -> None:
    """Add the places of data to the user's list that a run or study of the user's reads."""
    places = [place for each in options for place in places_of(each)]
    if places:
        trusted_files.remember(places=places)
