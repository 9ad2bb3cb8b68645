"""Writes what `runs/records.py` reads: whole files, of the same bytes whenever the same step is reached."""

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor

from droptop.runs.checkpoint import step_name
from droptop.runs.records import IMAGES, read_record
from droptop.system.files import write_atomic


def write_record(folder: Path, name: str, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ours = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
    # One entry of metadata: safetensors writes several of them in an order that changes from call to call.
    write_atomic(folder / f"{name}.safetensors", save(ours, {"about": json.dumps(about)}))


def write_moment(folder: Path, step: int, task: int, tensors: dict[str, Tensor], **about: Any) -> None:
    write_record(folder, step_name(step), tensors, {"step": step, "task": task, **about})


def forget_others(folder: Path, count: int) -> None:
    """Removes the maps that another number of images has left, which a run was asked for before."""
    shown = read_record(folder / f"{IMAGES}.safetensors")
    if shown is not None and len(shown[0]["labels"]) != count:
        for path in folder.glob("step-*.safetensors"):
            path.unlink(missing_ok=True)
