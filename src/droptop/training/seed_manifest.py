"""The manifest of a seed that ends, and what is left of one when the seed is made anew.

Records (maps, confusion) are not written again where a seed goes on from its last checkpoint. So that none is taken for
what it is not, those that an earlier manifest does not have are removed before the seed goes on.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from droptop.runs.checkpoint import newest_first
from droptop.runs.config import Config
from droptop.runs.manifest import NAME, Manifest, Unfit, run_of, sha256_of
from droptop.system.files import json_bytes
from droptop.system.json_files import read_json

RECORDS = ("maps/*.safetensors", "confusion/*.safetensors")


def record_files(folder: Path) -> dict[str, Path]:
    """Return the records in a seed's folder by their names in a manifest."""
    paths = sorted(path for kind in RECORDS for path in folder.glob(kind))
    return {path.relative_to(folder).as_posix(): path for path in paths}


def write_manifest(config: Config, folder: Path, seed: int, metrics: str, result: dict[str, Any]) -> None:
    """Write the manifest of a seed that is done but for its result.json, by the SHA-256 of its metrics and its result.

    Tensors of checkpoints are not read again: their headers have their SHA-256.
    """
    run = folder.absolute().parent
    files = {"metrics.jsonl": metrics, "result.json": hashlib.sha256(json_bytes(result)).hexdigest()}
    beside = {"spec.json": folder / "spec.json"} | record_files(folder)
    files |= {name: sha256_of(path) for name, path in beside.items()}
    for header in newest_first(folder / "checkpoints"):
        with suppress(OSError, ValueError, TypeError, LookupError):  # an older one may be damaged
            files[f"checkpoints/{header.stem}.safetensors"] = str(read_json(header)["sha256"])
    arm = run.name if (run.parent / "config.toml").is_file() else ""  # its parent is the comparison
    Manifest(files, config.configuration(), arm, seed, run_of(run)).write(folder)


def forget(folder: Path, warn: Callable[[str], None]) -> None:
    """Remove the manifest of a seed that is to go on, and before that the records that are not as it says."""
    path = folder / NAME
    if not path.exists():
        return
    known: dict[str, str] = {}
    with suppress(OSError, ValueError, TypeError, LookupError):
        known = dict(read_json(path)["files"])  # a hash that a file fits is right, whatever else is damaged
    there = record_files(folder)
    for name in sorted(there.keys() | {name for name in known if name.startswith(("maps/", "confusion/"))}):
        with suppress(Unfit):
            if name in there and sha256_of(there[name]) == known.get(name):
                continue
        warn(f"{folder / name} is not what was written, and is left out; remove {folder} to make the seed anew")
        (folder / name).unlink(missing_ok=True)
    path.unlink()
