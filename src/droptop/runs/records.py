"""What a seed leaves behind besides its metrics, for pictures: where its model looks, and what it takes for what.

    seed-K/maps/images.safetensors       the images looked at, of a run's first seed, once
    seed-K/maps/step-N.safetensors       its attention, and the cells that would be dropped, after step N
    seed-K/confusion/step-N.safetensors  after every task: a matrix a test set, counts of true x predicted class

Files are written whole and to the same bytes whenever the same step is reached, so that a run that was killed and
resumed ends with those of one that was not. Whoever reads leaves out what is damaged: they are pictures, not results.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from droptop.runs.folder import seed_folder

IMAGES = "images"


class Moment(NamedTuple):
    """The maps after one step; N, h, w each."""

    step: int
    task: int
    attention: np.ndarray
    dropped: np.ndarray | None  # cells that would be dropped, or weakened by a soft mask; None where none ever are


class Maps(NamedTuple):
    """What a run's model looked at, from the middle of the first task to the end of the last one."""

    images: np.ndarray  # the first few of the N images: n, height, width, channels
    names: list[str]  # of all N images' classes
    labels: np.ndarray  # N
    shortcut: np.ndarray | None  # N, h, w: share of each cell that the shortcut covers; None where nobody knows
    moments: list[Moment]


class Confusion(NamedTuple):
    """What was taken for what after a task, among the classes seen so far."""

    step: int
    task: int
    classes: list[str]
    tasks: list[list[int]]  # classes of each
    counts: dict[str, np.ndarray]  # by test set: true class x predicted class


def read_maps(run: Path, seed: int) -> Maps | None:
    """The maps of a run's seed; None where it recorded none."""
    folder = seed_folder(run, seed) / "maps"
    shown = read_record(folder / f"{IMAGES}.safetensors")
    moments = [
        Moment(about["step"], about["task"], tensors["attention"], tensors.get("dropped"))
        for tensors, about in _steps(folder)
    ]
    if shown is None or not moments:
        return None
    tensors, about = shown
    return Maps(
        tensors["images"].transpose(0, 2, 3, 1), about["names"], tensors["labels"], tensors.get("shortcut"), moments
    )


def read_confusion(run: Path, seed: int) -> list[Confusion]:
    """A seed's confusion after every task so far."""
    return [Confusion(**about, counts=tensors) for tensors, about in _steps(seed_folder(run, seed) / "confusion")]


def _steps(folder: Path) -> Iterator[tuple[dict[str, np.ndarray], dict[str, Any]]]:
    for path in sorted(folder.glob("step-*.safetensors")):
        if (found := read_record(path)) is not None:
            yield found


def read_record(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    try:
        with safe_open(path, "np") as file:
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
            return tensors, json.loads(file.metadata()["about"])
    except (OSError, SafetensorError, TypeError, KeyError, ValueError):
        return None
