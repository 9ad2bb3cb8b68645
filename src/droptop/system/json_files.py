"""JSON that others may have damaged: read within limits of size and depth, and refused in one way, as ValueError."""

import json
import re
from pathlib import Path
from typing import Any

from droptop.system.plain_files import open_to_read

MOST_BYTES = 1 << 26  # of a file, or of a line of one; ours have kilobytes
MOST_DEPTH = 32  # of lists and tables within each other; ours have six
ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def read_json(path: Path) -> Any:
    """Return what a JSON file holds; raise OSError if it cannot be read, ValueError if it is not JSON within limits."""
    return parse_json(read_bytes(path))


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file; raise ValueError if there are more than `most`, which are then not read."""
    with open_to_read(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it has more than {most >> 20} MiB")
    return data


def parse_json(data: bytes) -> Any:
    """Return the value of JSON; raise ValueError if it is none, nested too deeply, or has text that is not Unicode."""
    if len(data) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES >> 20} MiB")
    try:
        value = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if data.count(b"[") + data.count(b"{") > MOST_DEPTH:  # else it cannot be
        check_depth(value)
    if ESCAPED_SURROGATE.search(data):
        json.dumps(value, ensure_ascii=False).encode()  # half a character cannot be encoded, or printed
    return value


def check_depth(value: Any, most: int = MOST_DEPTH) -> None:
    """Raise ValueError if lists and tables are nested more deeply than `most`."""
    level = [value]
    for _ in range(most + 1):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return
    raise ValueError("it is nested too deeply")


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number; a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
