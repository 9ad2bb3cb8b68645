"""Write metrics.jsonl, with the length and the hash by which a checkpoint recognises it."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, BinaryIO

from droptop.system.plain_files import open_to_read, open_to_write


class MetricsFile:
    """Append lines to a metrics.jsonl."""

    def __init__(self, path: Path, length: int = 0) -> None:
        """Open the file, cut back to `length` bytes."""
        self.file: BinaryIO = open_to_write(path, "r+b" if path.exists() else "w+b")
        self.hash = hashlib.sha256(self.file.read(length))
        self.file.truncate(length)
        self.file.seek(length)

    def append(self, line: dict[str, Any]) -> None:
        """Append a line."""
        data = (json.dumps(line) + "\n").encode()
        self.file.write(data)
        self.hash.update(data)

    def mark(self) -> dict[str, Any]:
        """Sync what was written so far to the disk; return its length and hash."""
        self.file.flush()
        os.fsync(self.file.fileno())
        return {"bytes": self.file.tell(), "sha256": self.hash.hexdigest()}

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def matches(path: Path, mark: dict[str, Any]) -> bool:
    """Return whether a file begins with the bytes of a mark."""
    if not path.exists():
        return False
    with open_to_read(path) as file:
        return hashlib.sha256(file.read(mark["bytes"])).hexdigest() == mark["sha256"]
