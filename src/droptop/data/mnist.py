"""MNIST from its idx files: 28 x 28 grey padded to 32 x 32.

    ROOT/MNIST/raw/{train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz]

`streams/mnist.py` makes streams of them.
"""

from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from droptop.data.idx import read_idx
from droptop.data.root import FileProgress, Missing, dataset_folder, download_command
from droptop.errors import BadRequest, all_refusals
from droptop.types import Samples

FOLDER = "MNIST/raw"
SIDE, PADDING = 28, 2
DIGITS = tuple("0123456789")
PARTS = {"train": 60_000, "t10k": 10_000}  # images in each


def where(root: Path | None) -> str:
    """Return the folder; refuse one that lacks a file. Reads none of them."""
    folder = folder_of(root)
    for part in PARTS:
        for kind in ("images-idx3", "labels-idx1"):
            path = folder / f"{part}-{kind}-ubyte"
            if not path.is_file() and not path.with_name(path.name + ".gz").is_file():
                raise Missing("MNIST", path, f"{download_command('mnist', root)} fetches it")
    return str(folder)


def check(root: Path | None, progress: FileProgress) -> str:
    """Read every file and return a line about them; refuse them with everything that is wrong."""
    train, test = read(folder_of(root), tuple(PARTS.items()), progress)
    return f"{len(train):,} + {len(test):,} images of {len(DIGITS)} classes, {SIDE} x {SIDE}"


# -- The files --------------------------------------------------------------------------------------------------------


def folder_of(root: Path | None) -> Path:
    """Return the folder; raise `Missing`, with the command that gets it, where there is none."""
    return dataset_folder("MNIST", root, FOLDER, f"{download_command('mnist', root)} fetches it")


def digits(root: Path | None) -> tuple[Samples, Samples]:
    """Return training and test images (N, 1, 32, 32)."""
    return _cached(folder_of(root).resolve(), tuple(PARTS.items()))


@cache
def _cached(folder: Path, parts: tuple[tuple[str, int], ...]) -> tuple[Samples, Samples]:
    """Return training and test images, read once per process."""
    return read(folder, parts, lambda done, total, name: None)


def read(folder: Path, parts: tuple[tuple[str, int], ...], progress: FileProgress) -> tuple[Samples, Samples]:
    """Return training and test images of a folder; refuse files with everything that is wrong."""
    images, labels = [], []
    with all_refusals() as trying:
        for done, (part, rows) in enumerate(parts):
            with trying():
                path = present(folder / f"{part}-images-idx3-ubyte")
                progress(2 * done, 2 * len(parts), path.name)
                images.append(F.pad(torch.tensor(read_idx(path, (rows, SIDE, SIDE))), (PADDING,) * 4)[:, None])
            with trying():
                path = present(folder / f"{part}-labels-idx1-ubyte")
                progress(2 * done + 1, 2 * len(parts), path.name)
                labels.append(read_labels(path, rows))
        progress(2 * len(parts), 2 * len(parts), "MNIST")
    train, test = map(Samples, images, labels)
    return train, test


def read_labels(path: Path, rows: int) -> Tensor:
    """Return the labels in a file; refuse one with a label that is no digit, or without some digit."""
    y = torch.tensor(read_idx(path, (rows,))).long()
    for row in (y >= len(DIGITS)).nonzero()[:1, 0].tolist():
        raise BadRequest(f"{path}: the label of image {row} is {y[row]} instead of a number from 0 to 9")
    for digit in (y.bincount(minlength=len(DIGITS)) == 0).nonzero()[:1, 0].tolist():
        raise BadRequest(f"{path}: no image of class {digit}")
    return y


def present(path: Path) -> Path:
    """Return the file, or the compressed one where there is only that; refuse a missing one."""
    compressed = path.with_name(path.name + ".gz")
    if not path.is_file() and not compressed.is_file():
        raise BadRequest(f"{path} is missing, and so is {compressed.name}")
    return path if path.is_file() else compressed
