"""Files that are whole whenever the machine stops: written under another name, synced, and renamed."""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from droptop.system.plain_files import bytes_of, open_to_read, open_to_write

PART = ".part"  # the end of the name under which a file is written before it is renamed


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that, whenever the machine stops, either the old file or the whole new one is there."""
    with _written_beside(path, data) as beside:
        beside.replace(path)
    _sync_folder(path.parent)


def write_new(path: Path, data: bytes) -> None:
    """Write a file that nobody has: whenever the machine stops, there is none or the whole one.

    Raise FileExistsError if there is one already, also where two processes try at the same moment.
    """
    with _written_beside(path, data) as beside:
        try:
            os.link(beside, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            path.open("xb").close()
            beside.replace(path)
        else:
            beside.unlink()
    _sync_folder(path.parent)


def remove_left_over(path: Path) -> None:
    """Remove the second name of a file, which a kill within `write_new` leaves."""
    beside = path.with_name(path.name + PART)
    with suppress(OSError):
        if beside.samefile(path):
            beside.unlink()


@contextmanager
def _written_beside(path: Path, data: bytes) -> Iterator[Path]:
    """Write and sync a file beside another; give its name, nobody else's meanwhile. On an OSError remove it."""
    with _only_writer(path) as file:
        beside = Path(file.name)
        try:
            if file.tell():  # of a process that was killed
                file.truncate(0)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            yield beside
        except OSError:
            beside.unlink(missing_ok=True)
            raise


def _only_writer(path: Path) -> BinaryIO:
    """Open a file beside another to append to it, once no other process writes to one of that name.

    Two commands may write the same summary of one folder. Without locks each has a name of its own.
    """
    beside = path.with_name(path.name + PART)
    while True:
        if beside.is_symlink():  # somebody else's: ours is never a link
            beside.unlink(missing_ok=True)
        file = open_to_write(beside, "ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            status = os.fstat(file.fileno())
            if status.st_nlink > 1:  # of a `write_new` that was killed: what is written here would be in its file
                beside.unlink()
            elif os.path.samestat(status, beside.stat()):
                return file
        except FileNotFoundError:  # while we waited, it got another name
            pass
        except OSError:
            file.close()
            beside.unlink(missing_ok=True)
            return open_to_write(path.with_name(f"{path.name}.{os.getpid()}{PART}"), "wb")
        file.close()


def _sync_folder(folder: Path) -> None:
    """Sync the names in a folder to the disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def write_changed(path: Path, data: bytes) -> None:
    """Write a file unless it holds these bytes already, since a finished run may be read-only."""
    if not (path.is_file() and bytes_of(path) == data):
        write_atomic(path, data)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file; raise OSError if it cannot be read."""
    with open_to_read(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON; refuse NaN and infinity."""
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON unless the file holds it already; refuse NaN and infinity."""
    write_changed(path, json_bytes(value))
