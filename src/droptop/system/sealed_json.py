"""JSON files that show by themselves whether they are as droptop wrote them: their `seal` is the SHA-256 of the rest.

It is no signature: who changes a file and seals it anew is not noticed.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from droptop.system.files import write_json
from droptop.system.json_files import parse_json, read_bytes

SEAL = "seal"


def seal_of(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 by which content shows that it is whole."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write content with its seal, unless the file holds it already; refuse NaN and infinity."""
    write_json(path, {**content, SEAL: seal_of(content)})


def read_sealed(path: Path, needed: bool = False) -> dict[str, Any]:
    """Return what a file has beside its seal.

    Raise OSError if it cannot be read, and ValueError if it is no such JSON or not what was sealed. Files of earlier
    versions have no seal, unless one is `needed`.
    """
    return unsealed(read_bytes(path), needed)


def unsealed(data: bytes, needed: bool = False) -> dict[str, Any]:
    """Return what the bytes of such a file have, as `read_sealed` does."""
    content = parse_json(data)
    if not isinstance(content, dict) or (needed and SEAL not in content):
        raise ValueError("it has no seal")
    if SEAL in content and content.pop(SEAL) != seal_of(content):
        raise ValueError("it is not what was sealed")
    return content


def has_seal(path: Path) -> bool:
    """Return whether a file is there and has a seal, whole or not; files of earlier versions have none."""
    try:
        return SEAL in parse_json(read_bytes(path))
    except (OSError, ValueError, TypeError):
        return False
