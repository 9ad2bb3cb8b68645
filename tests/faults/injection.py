"""Have one call of this process on one file fail, or kill the process there: what disks and machines do, on order.

Calls are counted below Python's buffers, as the system sees them. `record` writes down every call that changes a file
in a folder, so that tests need no list of files of their own.
"""

import builtins
import errno
import io
import os
import re
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

KILL = ("kill before", "kill after", "kill all")  # this process before or after the call; every process of the command
real = {name: getattr(os, name) for name in ("open", "write", "fsync", "replace", "rename", "unlink", "mkdir")}
real_open = io.open


class Fault(NamedTuple):
    """Name the call that fails: the nth of its kind on a path, which is relative to the folder that is watched."""

    call: str  # open, write, truncate, fsync, rename, unlink or mkdir
    path: str
    nth: int
    harm: str  # one of KILL, or the name of an error; ENOSPC stays, since a full disk stays full

    def __str__(self) -> str:
        return f"{self.harm} at {self.call} {self.nth} of {self.path}"


class Watch:
    """Tell every call that changes a file in a folder, in turn, to a function, which may raise or kill."""

    def __init__(self, folder: Path, hear: Callable[[str, str], Any]) -> None:
        self.folder, self.hear = f"{folder}", hear

    def inside(self, path: Any) -> str | None:
        """Return a path relative to the folder; None for others, such as pipes."""
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}").removesuffix(" (deleted)")
        path = os.path.abspath(os.fsdecode(path))
        return os.path.relpath(path, self.folder) if f"{path}/".startswith(f"{self.folder}/") else None

    def install(self) -> None:
        """Put this between Python and the system, in this process and those that it forks."""
        for name, call in (("fsync", "fsync"), ("unlink", "unlink"), ("remove", "unlink"), ("mkdir", "mkdir")):
            setattr(os, name, self.around(call, getattr(os, name)))
        for name in ("replace", "rename"):
            setattr(os, name, self.around("rename", getattr(os, name), by=1))
        os.open = self.os_open  # type: ignore[assignment]
        builtins.open = io.open = self.open  # type: ignore[assignment]

    def around(self, call: str, original: Callable[..., Any], by: int = 0) -> Callable[..., Any]:
        """Return a function of `os` that is heard before and after; `by` is the argument that names the file."""

        def called(*given: Any, **more: Any) -> Any:
            if (path := self.inside(given[by])) is None:
                return original(*given, **more)
            after = self.hear(call, path)
            try:
                return original(*given, **more)
            finally:  # a call that fails, such as mkdir of what is there, has an end as well
                if after is not None:
                    after()

        return called

    def os_open(self, path: Any, flags: int, *given: Any, **more: Any) -> int:
        """Open a file descriptor."""
        after = None
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR) and (inside := self.inside(path)) is not None:
            after = self.hear("open", inside)
        try:
            number: int = real["open"](path, flags, *given, **more)
        finally:
            if after is not None:
                after()
        return number

    def open(self, file: Any, mode: str = "r", buffering: int = -1, *given: Any, **more: Any) -> Any:
        """Open a file, whose writes are heard if it is one of the folder."""
        if isinstance(file, int) or not set(mode) & set("wxa+") or (inside := self.inside(file)) is None:
            return real_open(file, mode, buffering, *given, **more)
        after = self.hear("open", inside)
        raw = HeardFile(file, mode.replace("b", "").replace("t", ""))
        if after is not None:
            after()
        raw.hear, raw.inside = self.hear, inside
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, *given, **more)


class HeardFile(io.FileIO):
    """Be a file below its buffer."""

    hear: Callable[..., Any]
    inside: str

    def write(self, data: Any) -> int:
        """Write; whoever is killed here has written half of it."""
        after = self.hear("write", self.inside, lambda: super(HeardFile, self).write(bytes(data)[: len(data) // 2]))
        written = super().write(data)
        if after is not None:
            after()
        return written

    def truncate(self, size: int | None = None) -> int:
        after = self.hear("truncate", self.inside)
        result = super().truncate(size)
        if after is not None:
            after()
        return result


def record(folder: Path, log: Path) -> None:
    """Write every call on a file in a folder into a log, from now on, a line each."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def hear(call: str, path: str, half: Any = None) -> None:
        real["write"](file, f"{os.getpid()} {call} {path}\n".encode())

    Watch(folder, hear).install()


def harm(folder: Path, fault: Fault, struck: Path) -> None:
    """Do a fault in this process or in those that it forks; make the file `struck` when it was done."""
    calls, full = Counter[tuple[str, str]](), [False]

    def hear(call: str, path: str, half: Callable[[], Any] | None = None) -> Callable[[], None] | None:
        calls[call, path] += 1
        if full[0] and call in ("write", "mkdir"):
            raise error(fault.harm, call, path)
        if (call, path, calls[call, path]) != fault[:3]:
            return None
        try:
            os.close(real["open"](struck, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:  # it came to another process, and is done once
            return None
        if fault.harm == "kill after":
            return kill
        if fault.harm in KILL:
            if half is not None:
                half()
            kill(everybody=fault.harm == "kill all")
        full[0] = fault.harm == "ENOSPC"
        raise error(fault.harm, call, path)

    def error(name: str, call: str, path: str) -> OSError:
        number = getattr(errno, name)
        named = () if call in ("write", "fsync", "truncate") else (f"{folder}/{path}",)  # the system knows no more
        return OSError(number, os.strerror(number), *named)

    Watch(folder, hear).install()


def kill(everybody: bool = False) -> None:
    """Kill this process, or all of its group."""
    if everybody:
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def chances(log: Path) -> list[tuple[str, str, int]]:
    """Return the calls of a log as call, path and number: the first and the last of each kind on each kind of file.

    Files that differ in a step or in the arm that they are of are of one kind.
    """
    counts, kinds = Counter[tuple[str, str, str]](), dict[tuple[str, str], list[tuple[str, str, int]]]()
    for line in log.read_text().splitlines():
        process, call, path = line.split(" ", 2)
        counts[process, call, path] += 1
        chance = (call, path, counts[process, call, path])
        kind = re.sub(r"step-\d+", "step-N", re.sub(r"^(runs/[^/]+|none|droptop)/", "ARM/", path))
        kinds.setdefault((call, kind), []).append(chance)
    return list(dict.fromkeys(chance for each in kinds.values() for chance in (each[0], each[-1])))
