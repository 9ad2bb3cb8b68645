"""Where data sets lie: `--root DIR`, else the folder that DROPTOP_DATA names, else ./data."""

import os
from collections.abc import Callable
from pathlib import Path

from droptop.errors import BadRequest

FileProgress = Callable[[int, int, str], None]  # files or bytes done, in all (0 where nobody knows), the file at hand


def data_root(root: Path | None) -> Path:
    """The folder that data sets lie in."""
    return root if root is not None else Path(os.environ.get("DROPTOP_DATA") or "data")


class Missing(BadRequest):
    """A data set that is not on this disk: what was looked for, and how to get it."""

    def __init__(self, name: str, looked_for: Path, how: str) -> None:
        super().__init__(
            f"{name} is not on this disk: looked for {looked_for}; {how}, or name another folder with "
            "--root or DROPTOP_DATA"
        )
        self.how = how


def dataset_folder(name: str, root: Path | None, folder: str, how: str) -> Path:
    """A data set's folder below the root, or what to do about its absence."""
    path = data_root(root) / folder
    if not path.is_dir():
        raise Missing(name, path, how)
    return path


def download_command(name: str, root: Path | None) -> str:
    """What to type for a data set that has a public address."""
    return f"`droptop data download {name}{'' if root is None else f' --root {root}'}`"
