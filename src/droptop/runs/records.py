"""Records that pictures are drawn from: attention maps and confusion matrices of a seed, read back as numpy arrays.

    seed-K/maps/images.safetensors       the images whose attention is recorded; of a run's first seeds, once
    seed-K/maps/step-N.safetensors       attention after step N, and the cells that would be dropped
    seed-K/confusion/step-N.safetensors  after every task: a matrix per test set, counts of true x predicted class

Files are written whole, with the same bytes whenever the same step is reached, so that a run that was killed and
resumed has the same files as one that was not. Damaged files are left out.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from droptop.results.checks import check_result
from droptop.runs.folder import seed_folder
from droptop.system.json_files import parse_json
from droptop.system.tensor_files import check_header

IMAGES = "images"


class Moment(NamedTuple):
    """Hold the maps after one step; each N, h, w."""

    step: int
    task: int
    attention: np.ndarray
    dropped: np.ndarray | None  # cells that would be dropped, or weakened by a soft mask; None without debiasing


class Maps(NamedTuple):
    """Hold the attention of a seed's model, from the middle of the first task to the end of the last one."""

    images: np.ndarray  # the first few of the N images: n, height, width, channels
    names: list[str]  # of all N images' classes
    labels: np.ndarray  # N
    shortcut: np.ndarray | None  # N, h, w: share of each cell that the shortcut covers; None where unknown
    moments: list[Moment]


class Confusion(NamedTuple):
    """Hold how often each class was predicted as which, after a task, among the classes seen so far."""

    step: int
    task: int
    classes: list[str]
    tasks: list[list[int]]  # the classes of each task
    counts: dict[str, np.ndarray]  # by test set: true class x predicted class


def read_maps(run: Path, seed: int) -> Maps | None:
    """Return the maps of a run's seed; None where it recorded none."""
    folder = seed_folder(run, seed) / "maps"
    images = read_record(folder / f"{IMAGES}.safetensors")
    if images is None:
        return None
    tensors, about = images
    try:
        pixels, labels, names = tensors["images"], tensors["labels"], about["names"]
        shortcut = tensors.get("shortcut")
        if (
            (pixels.ndim, labels.ndim, len(labels)) != (4, 1, len(names))
            or not (0 < len(pixels) <= len(labels) and pixels.shape[1] in (1, 3) and pixels.dtype == np.uint8)
            or not all(isinstance(name, str) for name in names)
        ):
            return None
        moments = [
            Moment(about["step"], about["task"], tensors["attention"], tensors.get("dropped"))
            for tensors, about in _steps(folder)
            if type(about["step"]) is int and type(about["task"]) is int
        ]
    except (LookupError, TypeError):
        return None
    grids = {moment.attention.shape for moment in moments} | {
        moment.dropped.shape for moment in moments if moment.dropped is not None
    }
    grids |= set() if shortcut is None else {shortcut.shape}
    if len(grids) != 1 or [(3, len(labels))] != [(len(grid), *grid[:1]) for grid in grids]:
        return None  # no moments, or such as do not go together
    if not all(np.isfinite(moment.attention).all() for moment in moments):
        return None
    return Maps(pixels.transpose(0, 2, 3, 1), names, labels, shortcut, moments)


def read_confusion(run: Path, seed: int) -> list[Confusion]:
    """Return a seed's confusion after each task so far."""
    found = []
    for tensors, about in _steps(seed_folder(run, seed) / "confusion"):
        try:
            check_result({"tests": {"": {}}, "classes": about["classes"], "tasks": about["tasks"]})
            shape = (len(about["classes"]),) * 2
            if all(counts.shape == shape and counts.dtype == np.int32 for counts in tensors.values()):
                step, task = int(about["step"]), int(about["task"])
                found.append(Confusion(step, task, about["classes"], about["tasks"], tensors))
        except (ValueError, TypeError, LookupError):
            continue
    return found


def _steps(folder: Path) -> Iterator[tuple[dict[str, np.ndarray], dict[str, Any]]]:
    """Yield the whole records of a folder by step: tensors, and what is noted about them."""
    for path in sorted(folder.glob("step-*.safetensors")):
        if (record := read_record(path)) is not None:
            yield record


def read_record(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Return the tensors of a record and what is noted about them; None where it is missing or damaged."""
    try:
        check_header(path)
        with safe_open(path, "np") as file:
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
            return tensors, parse_json(file.metadata()["about"].encode())
    except (OSError, SafetensorError, TypeError, KeyError, ValueError, AttributeError):
        return None
