"""Methods from a user's file, which has a class derived from `Learner` and is named on the command line.

    --method my_method.py          the only learner that the file defines
    --method my_method.py:Mine     one of several

`docs/add-a-method.md` shows such a file.
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
    """The file of a method does not exist: results obtained with it can be shown, but nothing more can be run."""


def is_file(name: str) -> bool:
    """Return whether the name of a method is that of a file."""
    return name.partition(":")[0].endswith(SUFFIX)


def is_there(name: str) -> bool:
    """Return whether a method can be loaded: a user's file may have been moved since it was run."""
    return not is_file(name) or Path(name.partition(":")[0]).is_file()


def check_there(name: str) -> None:
    """Raise Gone if the file of a method does not exist."""
    if not is_there(name):
        raise Gone(f"--method {name}: there is no such file")


def absolute(name: str) -> str:
    """Return the name of a method's file with an absolute path, which is valid in any working folder."""
    path, colon, chosen = name.partition(":")
    return f"{Path(path).expanduser().absolute()}{colon}{chosen}"


def load(name: str) -> type[Learner]:
    """Return the learner that a file defines; raise BadRequest if the file fails or has no such learner."""
    path, _, chosen = absolute(name).partition(":")
    module = _module(Path(path))
    learners = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Learner)
        and value.__module__ == module.__name__
        and not key.startswith("_")
    }
    if chosen and chosen in learners:
        return learners[chosen]
    if len(learners) == 1 and not chosen:
        return next(iter(learners.values()))
    known = ", ".join(learners) or "no class derived from droptop.Learner"
    hint = f"; choose one: {path}:{next(iter(learners))}" if len(learners) > 1 and not chosen else ""
    raise BadRequest(f"--method {name}: the file defines {known}{hint}")


def sha256(name: str) -> str | None:
    """Return the SHA-256 of a method's file, which runs record; None for a built-in method or a missing file."""
    if not is_file(name) or not is_there(name):
        return None
    return hashlib.sha256(Path(name.partition(":")[0]).read_bytes()).hexdigest()


def _module(path: Path) -> ModuleType:
    """Import the file, once per process; whatever it raises becomes a BadRequest of one line."""
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
