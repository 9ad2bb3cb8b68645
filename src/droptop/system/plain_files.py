"""Open plain files alone: a folder from somebody else may hold others.

A pipe is waited for without end, a link to a device is read without end, and what is written through a link lands in a
file of yours. So a file is read only if it is one, or a link to one, and written only if it is no link.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast


def open_to_read(path: Path) -> BufferedReader:
    """Open a file; raise OSError if it is missing, or no file."""
    file = open(path, "rb", opener=_at_once)  # noqa: SIM115 - it is the caller's
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError(errno.EINVAL, "is no file", str(path))


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a file; raise OSError if it is missing, or no file."""
    with open_to_read(path) as file:
        return file.read()


def open_to_write(path: Path, mode: str) -> BinaryIO:
    """Open a file of ours in a mode for bytes; raise OSError if it is a link, and write nothing where it leads."""
    return cast(BinaryIO, open(path, mode, opener=not_through_links))


def not_through_links(path: Any, flags: int) -> int:
    """Open a file descriptor for `open`, but not through a link."""
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "is a link, and nothing is written through links", str(path)) from None
        raise


def _at_once(path: Any, flags: int) -> int:
    """Open a file descriptor without waiting for whoever is to write into a pipe."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
