"""seed-K/spec.json: the Spec of a seed's images, so that its learner can be loaded where the data is not."""

from pathlib import Path
from typing import Any

import torch

from droptop.errors import BadRequest
from droptop.system.files import write_json
from droptop.system.json_files import read_json
from droptop.types import Spec


def write_spec(folder: Path, spec: Spec) -> None:
    """Write a spec into a seed's folder."""
    write_json(folder / "spec.json", vars(spec) | {"dtype": str(spec.dtype).removeprefix("torch.")})


def read_spec(folder: Path) -> Spec | None:
    """Return the spec in a seed's folder; None where there is no file. Raise BadRequest if it is damaged."""
    path = folder / "spec.json"
    if not path.exists():
        return None
    try:
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in read_json(path).items()
        }
        return Spec(**fields | {"dtype": getattr(torch, fields["dtype"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadRequest(f"{path} is damaged: {error}") from None
