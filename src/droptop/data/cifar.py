"""CIFAR-10 and CIFAR-100: the python version of their authors, in the folders that torchvision uses.

    ROOT/cifar-10-batches-py/{data_batch_1 .. data_batch_5, test_batch, batches.meta}    split-cifar10, 5 x 2 classes
    ROOT/cifar-100-python/{train, test, meta}                                            split-cifar100, 5 x 20 classes

The test set is called `clean`. Files are read by `pickles`, which runs nothing that they name.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from droptop.data import pickles
from droptop.data.root import FileProgress, data_root, dataset_folder, download_command
from droptop.errors import BadRequest, all_refusals
from droptop.types import Samples

SHAPE = (3, 32, 32)


@dataclass(frozen=True)
class CifarFiles:
    """Say where the files of a data set lie, and what must be in them."""

    title: str
    download: str  # the name that `droptop data download` takes
    archive: str
    folder: str
    train: tuple[str, ...]
    rows: int  # images in each file of `train`
    test: str
    test_rows: int
    meta: str
    labels_key: str
    names_key: str
    classes: int
    mean: tuple[float, float, float]  # of the training images
    std: tuple[float, float, float]


CIFAR10 = CifarFiles(
    "CIFAR-10",
    "cifar10",
    "cifar-10-python.tar.gz",
    "cifar-10-batches-py",
    tuple(f"data_batch_{number}" for number in range(1, 6)),
    10_000,
    "test_batch",
    10_000,
    "batches.meta",
    "labels",
    "label_names",
    10,
    (0.4914, 0.4822, 0.4465),
    (0.2470, 0.2435, 0.2616),
)
CIFAR100 = CifarFiles(
    "CIFAR-100",
    "cifar100",
    "cifar-100-python.tar.gz",
    "cifar-100-python",
    ("train",),
    50_000,
    "test",
    10_000,
    "meta",
    "fine_labels",
    "fine_label_names",
    100,
    (0.5071, 0.4865, 0.4409),
    (0.2673, 0.2564, 0.2762),
)


def where(files: CifarFiles, root: Path | None) -> str:
    """Return the folder; refuse one that lacks a file. Reads none of them."""
    folder = folder_of(files, root)
    for name in (files.meta, *files.train, files.test):
        if not (folder / name).is_file():
            raise BadRequest(
                f"{folder / name} is missing; remove the folder, and "
                f"{download_command(files.download, root)} fetches it anew"
            )
    return str(folder)


def check(files: CifarFiles, root: Path | None, progress: FileProgress) -> str:
    """Read every file and return a line about them; refuse them with everything that is wrong."""
    train, test, classes = read(files, folder_of(files, root), progress)
    return f"{len(train):,} + {len(test):,} images of {len(classes)} classes, {SHAPE[1]} x {SHAPE[2]}"


def folder_of(files: CifarFiles, root: Path | None) -> Path:
    """Return the folder; raise `Missing`, with the command that gets it, where there is none."""
    archive, fetch = data_root(root) / files.archive, download_command(files.download, root)
    how = f"{fetch} unpacks {archive}" if archive.is_file() else f"{fetch} fetches it"
    return dataset_folder(files.title, root, files.folder, how)


# -- The files --------------------------------------------------------------------------------------------------------


@cache
def images(files: CifarFiles, folder: Path) -> tuple[Samples, Samples, tuple[str, ...]]:
    """Return training images, test images and the names of the classes, read once per process."""
    return read(files, folder, lambda done, total, name: None)


def read(files: CifarFiles, folder: Path, progress: FileProgress) -> tuple[Samples, Samples, tuple[str, ...]]:
    """Return training images, test images and the names of the classes; refuse files with everything that is wrong."""
    names = (files.meta, *files.train, files.test)

    def load(number: int) -> tuple[Path, dict[str, Any]]:
        progress(number, len(names), names[number])
        return folder / names[number], pickles.load(folder / names[number])

    rows, parts = [files.rows] * len(files.train) + [files.test_rows], []
    with all_refusals() as trying:
        with trying():
            classes = _class_names(*load(0), files)
        for number, count in enumerate(rows, 1):
            with trying():
                parts.append(_images(*load(number), files, count))
        progress(len(names), len(names), files.title)
    train, test = _join(parts[:-1]), _join(parts[-1:])
    for part, where in ((train, f"{folder}: the training files"), (test, folder / files.test)):
        for label in (part.y.bincount(minlength=files.classes) == 0).nonzero()[:1, 0].tolist():
            raise BadRequest(f"{where}: no image of class {classes[label]}")
    return train, test, classes


def _entry(path: Path, record: dict[str, Any], key: str, kind: type) -> Any:
    """Return an entry of a file's dictionary; refuse one that is missing or of another type."""
    if key not in record:
        raise BadRequest(f"{path} has no {key!r}")
    if not isinstance(record[key], kind):
        raise BadRequest(f"{path}: {key!r} is a {type(record[key]).__name__} instead of a {kind.__name__}")
    return record[key]


def _class_names(path: Path, record: dict[str, Any], files: CifarFiles) -> tuple[str, ...]:
    """Return the names of the classes, which are bytes where python 2 wrote them."""
    entries = _entry(path, record, files.names_key, list)
    names = [name.decode("latin1") if isinstance(name, bytes) else name for name in entries]
    if not all(isinstance(name, str) and name and name.isprintable() for name in names):
        raise BadRequest(f"{path}: {files.names_key!r} holds what is no name of a class")
    if len(names) != files.classes or len(set(names)) != files.classes:
        raise BadRequest(
            f"{path}: {len(set(names))} different names in a list of {len(names)} instead of {files.classes} classes"
        )
    return tuple(names)


def _images(path: Path, record: dict[str, Any], files: CifarFiles, rows: int) -> tuple[np.ndarray, list[int]]:
    """Return the images of a file as rows of bytes, and their labels."""
    data, labels = _entry(path, record, "data", np.ndarray), _entry(path, record, files.labels_key, list)
    if data.dtype != np.uint8:
        raise BadRequest(f"{path}: 'data' holds {data.dtype} instead of uint8")
    if data.shape != (rows, int(np.prod(SHAPE))):
        raise BadRequest(
            f"{path}: 'data' is {' x '.join(map(str, data.shape))} instead of {rows} images x "
            f"{int(np.prod(SHAPE))} bytes"
        )
    if len(labels) != rows:
        raise BadRequest(f"{path}: {len(labels)} labels of {rows} images")
    for row, label in enumerate(labels):
        if type(label) is not int or not 0 <= label < files.classes:
            what = label if type(label) is int else f"a {type(label).__name__}"
            raise BadRequest(
                f"{path}: the label of image {row} is {what} instead of a number from 0 to {files.classes - 1}"
            )
    return data, labels


def _join(parts: list[tuple[np.ndarray, list[int]]]) -> Samples:
    data = np.concatenate([data for data, _ in parts])
    return Samples(torch.from_numpy(data).view(-1, *SHAPE), torch.tensor([y for _, labels in parts for y in labels]))
