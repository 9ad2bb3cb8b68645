"""manifest.json: the SHA-256 of every file of a finished seed, and which run, arm, seed and configuration it is of.

    OUT/seed-K/manifest.json  written after all files but result.json, which follows and says that the seed is done
    OUT/manifest.json         of a finished run or comparison: its options, its summary, its costs, its pictures

So whoever shows a figure can tell whether it is what was measured, and here. A manifest seals itself too. It is no
signature: who changes a file and writes the manifest anew is not noticed.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from droptop.errors import BadRequest
from droptop.options import WITHOUT_EFFECT, YOUNGER
from droptop.system.files import write_json
from droptop.system.json_files import read_json

NAME = "manifest.json"
FORMAT = 1
CHANGING = ("asked", "flags", "flags_hold_for", "files", "later")  # of environment.json, while a run goes on


class Unfit(BadRequest):
    """A file that is not what its manifest says, or that belongs elsewhere."""


class Elsewhere(Unfit):
    """A seed of another run, arm or number than that of its folder."""


@dataclass(frozen=True)
class Manifest:
    """Hold what a folder's files are of, and the SHA-256 of each by its path in the folder."""

    files: dict[str, str]
    configuration: str = ""  # `configuration_of` its options
    arm: str = ""  # its name in a comparison
    seed: int | None = None
    run: str | None = None  # `run_of` its folder; None where that has no environment.json

    def write(self, folder: Path) -> None:
        """Write manifest.json into a folder, unless it says this already."""
        content = {"format": FORMAT} | asdict(self)
        write_json(folder / NAME, content | {"seal": seal_of(content)})

    def check(self, path: Path, name: str, data: bytes | None = None) -> None:
        """Raise Unfit unless a file has the bytes that the manifest says; `data` is its bytes where they were read."""
        if name not in self.files:
            raise Unfit(f"{path} is not in its manifest")
        if (sha256_of(path) if data is None else hashlib.sha256(data).hexdigest()) != self.files[name]:
            raise Unfit(f"{path} is not what was written: its SHA-256 is not that of its manifest")

    def check_seed(self, folder: Path, seed: int, arm: str = "", configuration: str | None = None) -> None:
        """Raise Elsewhere if these are files of another seed, arm or configuration than those given, where known."""
        run = folder.parent
        if self.seed != seed:
            raise Elsewhere(f"{folder} holds another seed: its manifest says {self.seed}")
        if arm and self.arm and arm != self.arm:
            raise Elsewhere(f"{folder} holds a seed of another arm, {self.arm}")
        if configuration is not None and self.configuration != configuration:
            raise Elsewhere(
                f"{run / 'config.toml'} has changed since {run} began, or {folder} is of another run: it was made with "
                "other options"
            )


def seal_of(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 by which a manifest, or another file of ours, shows that it is whole."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder, None where there is none; raise Unfit if it is damaged.

    One that names files outside of its folder is damaged, too.
    """
    try:
        content = read_json(folder / NAME)
        if content.pop("seal") != seal_of(content) or content.pop("format") != FORMAT:
            raise ValueError
        manifest = Manifest(**content)
        texts = [manifest.configuration, manifest.arm, *manifest.files, *manifest.files.values()]
        texts += [] if manifest.run is None else [manifest.run]
        paths = [PurePosixPath(name) for name in manifest.files]
        if not all(isinstance(text, str) for text in texts) or any(map(leads_out, paths)):
            raise ValueError
        return manifest
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        raise Unfit(f"{folder / NAME} is damaged") from None


def leads_out(path: PurePosixPath) -> bool:
    """Return whether a path may lead out of the folder that it is taken in."""
    return path.is_absolute() or ".." in path.parts


def configuration_of(options: Mapping[str, Any]) -> str:
    """Return a hash of the options of a run, by path, that decide what it finds; without those of younger versions."""
    deciding = {
        path: value
        for path, value in options.items()
        if path not in WITHOUT_EFFECT and (path, value) not in YOUNGER.items()
    }
    return hashlib.sha256(json.dumps(deciding, sort_keys=True, default=str).encode()).hexdigest()


def run_of(run: Path) -> str | None:
    """Return a hash of where a run began, as environment.json has it: code, machine, the files it was given."""
    with suppress(OSError, ValueError, AttributeError):
        began = {name: value for name, value in read_json(run / "environment.json").items() if name not in CHANGING}
        return seal_of(began)
    return None


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file; raise Unfit if it is missing or cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise Unfit(f"{path} is gone") from None
    except OSError as error:
        raise Unfit(f"{path} cannot be read: {error.strerror}") from None


def write_manifest(folder: Path, paths: Iterable[Path]) -> None:
    """Write the manifest of a run or a comparison: the SHA-256 of its files that are there, and where it began."""
    files = {path.relative_to(folder).as_posix(): sha256_of(path) for path in sorted(paths) if path.is_file()}
    Manifest(files, run=run_of(folder)).write(folder)
