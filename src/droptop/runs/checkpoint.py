"""Checkpoints: written so that a kill at any moment leaves the one before it, and checked byte by byte when read.

    NAME.safetensors   the tensors
    NAME.json          the header: the tensors' SHA-256, what else a reader must know, and a SHA-256 of the header

Both are written under another name, synced and renamed, the header last: a checkpoint exists once its header does.
There is no pickle anywhere.
"""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from droptop.errors import BadCheckpoint
from droptop.system.files import write_atomic
from droptop.system.json_files import read_json
from droptop.system.plain_files import bytes_of
from droptop.system.tensor_files import check_header

if TYPE_CHECKING:  # and where tensors are written or read: `droptop verify` looks at their bytes alone, without torch
    from torch import Tensor

FORMAT = 1
KEPT = 2  # the newest and the one before it


def _seal(header: dict[str, Any]) -> str:
    """Return the SHA-256 by which a header shows that it is whole."""
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()


def write(folder: Path, name: str, tensors: "dict[str, Tensor]", about: dict[str, Any]) -> None:
    """Write a checkpoint; keep the one before it and remove all others.

    Later ones are removed too: a resume that went back behind them has found them damaged. A folder is made in the
    seed's, and that one is not made anew where somebody has removed it.
    """
    from safetensors.torch import save

    folder.mkdir(exist_ok=True)
    data = save({key: value.detach().cpu().contiguous() for key, value in tensors.items()})
    write_atomic(folder / f"{name}.safetensors", data)
    header = {"format": FORMAT, "sha256": hashlib.sha256(data).hexdigest(), "about": about}
    write_atomic(folder / f"{name}.json", json.dumps(header | {"seal": _seal(header)}, indent=1).encode())
    for later in newest_first(folder):
        if later.stem > name:
            later.unlink()
    tidy(folder)


def tidy(folder: Path) -> None:
    """Remove all but the newest checkpoints, and what a kill left half written."""
    for stale in newest_first(folder)[KEPT:]:
        stale.unlink()
    whole = {path.stem for path in newest_first(folder)}
    for path in folder.iterdir():  # tensors without a header, and files that a kill left half written
        if path.suffix == ".part" or (path.suffix == ".safetensors" and path.stem not in whole):
            path.unlink()


def change(header_path: Path, about: dict[str, Any]) -> None:
    """Change some of what a checkpoint's header notes; leave a damaged one as it is."""
    try:
        header = read_json(header_path)
        if header.pop("seal") != _seal(header):
            return
    except (OSError, ValueError, KeyError, AttributeError):
        return
    header["about"] |= about
    write_atomic(header_path, json.dumps(header | {"seal": _seal(header)}, indent=1).encode())


def read_header(header_path: Path) -> dict[str, Any]:
    """Return the header of a checkpoint; raise BadCheckpoint if it is damaged."""
    try:
        header: dict[str, Any] = read_json(header_path)
        seal = header.pop("seal")
        if header["format"] != FORMAT or seal != _seal(header):
            raise ValueError
        return header
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BadCheckpoint(f"{header_path} is damaged") from None


def read(header_path: Path) -> "tuple[dict[str, Tensor], dict[str, Any]]":
    """Return the tensors of a checkpoint and what `write` was told about them; raise BadCheckpoint if it is damaged."""
    from safetensors.torch import load

    header, path = read_header(header_path), header_path.with_suffix(".safetensors")
    try:
        data = bytes_of(path)
        if hashlib.sha256(data).hexdigest() != header["sha256"]:
            raise BadCheckpoint(f"{path} is damaged: its SHA-256 is not the one in its header")
        check_header(data)
        return load(data), header["about"]
    except OSError as error:
        raise BadCheckpoint(f"{path}: {error.strerror}") from None
    except SafetensorError as error:
        raise BadCheckpoint(f"{path}: {error}") from None


def newest_first(folder: Path) -> list[Path]:
    """Return the headers in a folder, the last step first."""
    return sorted(folder.glob("step-*.json"), reverse=True)


def step_name(step: int) -> str:
    """Return the name of what is written after a step; names sort as steps do."""
    return f"step-{step:09d}"
