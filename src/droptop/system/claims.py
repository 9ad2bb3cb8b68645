"""Claims on files, for file systems without locks: a file beside another says which process has that one.

The system frees a lock when its holder ends, however it ends; a claim stays. It is void once its process has ended,
which only the machine of that process can tell, in the container of that process: a claim from another is for a person
to remove. Machines of one name are told apart by the id that Linux gave them when it was installed.
"""

import errno
import fcntl
import json
import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

from droptop.system.json_files import read_json

LACKING = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}  # what flock says there
SUFFIX = ".claim"
_tried: dict[int, bool] = {}  # by file system: whether it has locks


def has_locks(path: Path) -> bool:
    """Return whether a file can be locked; it is made if need be. What else is wrong with it, locking it will say."""
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError:
        return True
    try:
        device = os.fstat(number).st_dev
        if device not in _tried:
            _tried[device] = _can_lock(number)
        return _tried[device]
    finally:
        os.close(number)


def _can_lock(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in LACKING
    return True


def claim(path: Path) -> bool:
    """Claim a file for this process; return whether it has it now. A void claim is removed first."""
    place = _place(path)
    if (found := _read(place)) is not None and _void(found):
        _remove_void(place, found)
    try:
        _make(place)
    except FileExistsError:
        return False
    return True


def _make(place: Path) -> None:
    """Make a file that says which process this is; raise FileExistsError if there is one."""
    number = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(number, "w") as file:
            json.dump(_this_process(), file)
    except OSError:  # half written, nobody could tell whose it is
        place.unlink(missing_ok=True)
        raise


def _remove_void(place: Path, found: dict[str, Any]) -> None:
    """Remove a void claim, unless another process does, or has made its own in its place.

    Whoever makes the file beside it alone may remove it; so the claim that is removed is the one that was looked at.
    """
    beside = place.with_name(f"{place.name}.{found['process']}")
    with suppress(FileExistsError):
        _make(beside)
        try:
            if _read(place) == found:
                place.unlink()
        finally:
            beside.unlink()


def give_up(path: Path) -> None:
    """Remove the claim of this process."""
    place = _place(path)
    if _read(place) == _this_process():  # else a person has removed it, and another process has the file
        place.unlink(missing_ok=True)


def holder(path: Path) -> str | None:
    """Return in words which process has a file, and what to do if it has ended; None where nobody has it."""
    found = _read(_place(path))
    if found is None or _void(found):
        return None
    who = f"process {found.get('process', '?')} on {found.get('host', 'some machine')}"
    return f"{who}; this file system has no locks: if that process has ended, remove {_place(path)}"


def _place(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def _this_process() -> dict[str, Any]:
    return {"process": os.getpid(), "host": platform.node(), "began": _began(os.getpid())} | _here()


def _here() -> dict[str, str | None]:
    """Return what tells this machine, its start and this container from others; None where that is unknown."""
    return {
        "machine": _text("/etc/machine-id"),
        "boot": _text("/proc/sys/kernel/random/boot_id"),
        "container": _link("/proc/self/ns/pid"),  # whose processes have numbers of their own
    }


def _began(process: int) -> str | None:
    """Return when a process of this machine began, since its start; None where there is no such process."""
    said = _text(f"/proc/{process}/stat")
    return None if said is None else said.rpartition(")")[2].split()[19]


def _text(path: str) -> str | None:
    """Return what a file of the system says; None where it says nothing."""
    try:
        return Path(path).read_text().strip() or None
    except OSError:
        return None


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _void(found: dict[str, Any]) -> bool:
    """Return whether the process of a claim is known to have ended: here, or before this machine was started anew."""
    process, here = found.get("process"), _here()
    same = {name for name, value in here.items() if value is not None and found.get(name) == value}
    if type(process) is not int or found.get("host") != platform.node() or found.get("boot") is None:
        return False
    if "boot" in same:
        return "container" in same and _began(process) != found.get("began")
    return "machine" in same


def _read(place: Path) -> dict[str, Any] | None:
    """Return what a claim says; {} while it is being written, None where there is none."""
    try:
        found = read_json(place)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
