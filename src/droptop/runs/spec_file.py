"""seed-K/spec.json: what a seed's learner must know of images, so that it predicts where the data is not."""

import json
from pathlib import Path
from typing import Any

import torch

from droptop.errors import BadRequest
from droptop.system.files import write_json
from droptop.types import Spec


def write_spec(folder: Path, spec: Spec) -> None:
    write_json(folder / "spec.json", vars(spec) | {"dtype": str(spec.dtype).removeprefix("torch.")})


def read_spec(folder: Path) -> Spec | None:
    """Return what the images of a seed are like, or None where nobody noted it."""
    path = folder / "spec.json"
    if not path.exists():
        return None
    try:
        noted: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in json.loads(path.read_bytes()).items()
        }
        return Spec(**noted | {"dtype": getattr(torch, noted["dtype"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadRequest(f"{path} is damaged: {error}") from None
