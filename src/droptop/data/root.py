"""Where data sets lie: `--root DIR`, else the folder that DROPTOP_DATA names, else ./data."""

import os
from collections.abc import Callable
from pathlib import Path

from droptop.errors import BadRequest

FileProgress = Callable[[int, int, str], None]  # files or bytes done, their total (0: unknown), the current file


def data_root(root: Path | None) -> Path:
    """Return the folder that data sets lie in."""
    return root if root is not None else Path(os.environ.get("DROPTOP_DATA") or "data")


class Missing(BadRequest):
    """A data set that is not on this disk; the message says where it should be and how to get it."""

    def __init__(self, name: str, looked_for: Path, how: str) -> None:
        super().__init__(
            f"{name} is not on this disk: looked for {looked_for}; {how}, or name another folder with "
            "--root or DROPTOP_DATA"
        )
        self.how = how


def dataset_folder(name: str, root: Path | None, folder: str, how: str) -> Path:
    """Return the folder of a data set below the root; raise `Missing` where there is none."""
    path = data_root(root) / folder
    if not path.is_dir():
        raise Missing(name, path, how)
    return path


def download_command(name: str, root: Path | None) -> str:
    """Return the command that downloads a data set, in backquotes."""
    return f"`droptop data download {name}{'' if root is None else f' --root {root}'}`"
