"""Write the records that `runs/records.py` reads: whole files, with the same bytes at the same step."""

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor

from droptop.runs.checkpoint import step_name
from droptop.runs.records import IMAGES, read_record
from droptop.system.files import write_atomic


def write_record(folder: Path, name: str, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
    """Write tensors and what is noted about them as one safetensors file."""
    folder.mkdir(exist_ok=True)  # in the seed's, which is not made anew where somebody has removed it
    on_host = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
    # One entry of metadata: safetensors writes several of them in an order that changes from call to call.
    write_atomic(folder / f"{name}.safetensors", save(on_host, {"about": json.dumps(about)}))


def write_moment(folder: Path, step: int, task: int, tensors: dict[str, Tensor], **about: Any) -> None:
    """Write the record of one step, by which it is named."""
    write_record(folder, step_name(step), tensors, {"step": step, "task": task, **about})


def forget_others(folder: Path, count: int) -> None:
    """Remove maps of another number of images, which the run had before an option was changed."""
    images = read_record(folder / f"{IMAGES}.safetensors")
    if images is not None and len(images[0]["labels"]) != count:
        for path in folder.glob("step-*.safetensors"):
            path.unlink(missing_ok=True)
