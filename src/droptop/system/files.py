"""Files that are whole whenever the machine stops: written under another name, synced, and renamed."""

import json
import os
from pathlib import Path
from typing import Any


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that, whenever the machine stops, either the old file or the whole new one is there."""
    beside = path.with_name(path.name + ".part")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_changed(path: Path, data: bytes) -> None:
    """Write a file unless it holds these bytes already, since a finished run may be read-only."""
    if not (path.is_file() and path.read_bytes() == data):
        write_atomic(path, data)


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON; refuse NaN and infinity."""
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON unless the file holds it already; refuse NaN and infinity."""
    write_changed(path, json_bytes(value))
