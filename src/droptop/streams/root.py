"""Where data sets lie: `--root DIR`, else the folder that DROPTOP_DATA names, else ./data."""

import os
from pathlib import Path

from droptop.errors import BadRequest


def data_root(root: Path | None) -> Path:
    """The folder that data sets lie in."""
    return root if root is not None else Path(os.environ.get("DROPTOP_DATA") or "data")


def missing(name: str, looked_for: Path, how: str) -> BadRequest:
    """What to raise where a data set is not on this disk: what was looked for, and how to get it."""
    return BadRequest(f"{name} is not on this disk: looked for {looked_for}; {how}, or name another folder with --root "
                      "or DROPTOP_DATA")


def dataset_folder(name: str, root: Path | None, folder: str, how: str) -> Path:
    """A data set's folder below the root, or what to do about its absence."""
    path = data_root(root) / folder
    if not path.is_dir():
        raise missing(name, path, how)
    return path
