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
from droptop.options import WITHOUT_EFFECT, younger_of
from droptop.system.devices import kind_of
from droptop.system.files import sha256
from droptop.system.json_files import read_json
from droptop.system.sealed_json import read_sealed, seal_of, write_sealed

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
        write_sealed(folder / NAME, content)

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


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder, None where there is none; raise Unfit if it is damaged.

    One that names files outside of its folder is damaged, too.
    """
    try:
        content = read_sealed(folder / NAME, needed=True)
        if content.pop("format") != FORMAT:
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
    """Return a hash of the options of a run, by path, that decide what it finds."""
    return hashlib.sha256(json.dumps(deciding(options), sort_keys=True, default=str).encode()).hexdigest()


def deciding(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options, by path, that decide what a run finds; without those of younger versions.

    Of the device, only its kind does: a run may go on with another GPU, or with several.
    """
    kinds = {"device": kind_of(options["device"])} if "device" in options else {}
    younger = younger_of(options)
    return {
        path: value
        for path, value in (dict(options) | kinds).items()
        if path not in WITHOUT_EFFECT and (path, value) not in younger.items()
    }


def run_of(run: Path) -> str | None:
    """Return a hash of where a run began, as environment.json has it: code, machine, the files it was given."""
    with suppress(OSError, ValueError, AttributeError):
        began = {name: value for name, value in read_json(run / "environment.json").items() if name not in CHANGING}
        return seal_of(began)
    return None


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file; raise Unfit if it is missing or cannot be read."""
    try:
        return sha256(path)
    except FileNotFoundError:
        raise Unfit(f"{path} is gone") from None
    except OSError as error:
        raise Unfit(f"{path} cannot be read: {error.strerror}") from None


def write_manifest(folder: Path, paths: Iterable[Path], unfit: Iterable[str] = ()) -> None:
    """Write the manifest of a run or a comparison: the SHA-256 of its files that are there, and where it began.

    Files that are known to be `unfit`, by name, keep the SHA-256 that they had in the manifest before.
    """
    files = {path.relative_to(folder).as_posix(): sha256_of(path) for path in sorted(paths) if path.is_file()}
    with suppress(Unfit):
        before = read_manifest(folder)
        files |= {name: before.files[name] for name in unfit if before is not None and name in before.files}
    Manifest(files, run=run_of(folder)).write(folder)
