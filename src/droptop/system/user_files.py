"""Classes from a user's own Python file, which is named where a built-in name may stand.

    --method my_method.py          the only learner that the file defines
    --method my_method.py:Mine     one of several
    --debias droptop+my_debias.py  a debiaser, alone or beside others

`docs/add-a-method.md` and `docs/add-a-debiaser.md` show such files.
"""

import hashlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from droptop.errors import BadRequest

SUFFIX = ".py"
T = TypeVar("T")


class Gone(BadRequest):
    """A user's file does not exist: results obtained with it can be shown, but nothing more can be run."""


def is_file(name: str) -> bool:
    """Return whether a name is that of a user's file."""
    return name.partition(":")[0].endswith(SUFFIX)


def is_there(name: str) -> bool:
    """Return whether a name can be loaded: a user's file may have been moved since it was run."""
    return not is_file(name) or Path(name.partition(":")[0]).is_file()


def check_there(name: str, option: str) -> None:
    """Raise Gone if a name is that of a file which does not exist."""
    if not is_there(name):
        raise Gone(f"--{option} {name}: there is no such file")


def absolute(name: str) -> str:
    """Return the name of a file with an absolute path, which is valid in any working folder; others as they are."""
    if not is_file(name):
        return name
    path, colon, chosen = name.partition(":")
    return f"{Path(path).expanduser().absolute()}{colon}{chosen}"


def load(name: str, base: type[T], option: str) -> type[T]:
    """Return the class derived from `base` that a file defines; raise BadRequest if it fails or has no such class."""
    path, _, chosen = absolute(name).partition(":")
    module = _module(Path(path), option)
    classes = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, base)
        and value.__module__ == module.__name__
        and not key.startswith("_")
    }
    if chosen and chosen in classes:
        return classes[chosen]
    if len(classes) == 1 and not chosen:
        return next(iter(classes.values()))
    known = ", ".join(classes) or f"no class derived from droptop.{base.__name__}"
    hint = f"; choose one: {path}:{next(iter(classes))}" if len(classes) > 1 and not chosen else ""
    raise BadRequest(f"--{option} {name}: the file defines {known}{hint}")


def sha256(*names: str) -> str | None:
    """Return the SHA-256 of the files among some names, one after the other, which runs record.

    None where all names are built in, or a file is missing.
    """
    files = [Path(name.partition(":")[0]) for name in names if is_file(name)]
    if not files or not all(map(is_there, names)):
        return None
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _module(path: Path, option: str) -> ModuleType:
    """Import the file, once per process; whatever it raises becomes a BadRequest of one line."""
    name = f"droptop_{option}_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    check_there(str(path), option)
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
        raise BadRequest(f"--{option} {path}: line {line}: {type(error).__name__}: {error}") from None
    return module
