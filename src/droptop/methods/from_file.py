"""Methods that are not ours: a Python file with a class derived from `Learner`, named on the command line.

--method my_method.py          the one learner that the file defines
--method my_method.py:Mine     one of several
"""

import hashlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from droptop.errors import BadRequest
from droptop.learner import Learner

SUFFIX = ".py"


class Gone(BadRequest):
    """The file of a method is not there: what was measured with it can be shown, but nothing more be run."""


def is_file(name: str) -> bool:
    """Does a method's name stand for a file?"""
    return name.partition(":")[0].endswith(SUFFIX)


def is_there(name: str) -> bool:
    """Can a method be had, as far as its name tells? A file may have been moved since it was run."""
    return not is_file(name) or Path(name.partition(":")[0]).is_file()


def check_there(name: str) -> None:
    if not is_there(name):
        raise Gone(f"--method {name}: there is no such file")


def absolute(name: str) -> str:
    """The same file from whatever folder it is asked for."""
    path, colon, chosen = name.partition(":")
    return f"{Path(path).expanduser().absolute()}{colon}{chosen}"


def load(name: str) -> type[Learner]:
    """The learner that a file defines."""
    place, _, chosen = absolute(name).partition(":")
    module = _module(Path(place))
    found = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Learner)
        and value.__module__ == module.__name__
        and not key.startswith("_")
    }
    if chosen and chosen in found:
        return found[chosen]
    if len(found) == 1 and not chosen:
        return next(iter(found.values()))
    known = ", ".join(found) or "no class derived from droptop.Learner"
    hint = f"; choose one: {place}:{next(iter(found))}" if len(found) > 1 and not chosen else ""
    raise BadRequest(f"--method {name}: the file defines {known}{hint}")


def sha256(name: str) -> str | None:
    """Of the file's bytes: what a run knows it by; None for a method of ours, and where the file is gone."""
    if not is_file(name) or not is_there(name):
        return None
    return hashlib.sha256(Path(name.partition(":")[0]).read_bytes()).hexdigest()


def _module(path: Path) -> ModuleType:
    """The file, run once a process; whatever it raises becomes one line."""
    name = f"droptop_method_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    check_there(str(path))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # its name ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        where = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else where[-1] if where else "?"
        raise BadRequest(f"--method {path}: line {line}: {type(error).__name__}: {error}") from None
    return module
