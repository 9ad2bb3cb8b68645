"""What a user's own Python file defines, where it is named in place of a built-in name.

    --method my_method.py          the only learner that the file defines
    --method my_method.py:Mine     one of several
    --debias droptop+my_debias.py  a debiaser, alone or beside others
    --data my_stream.py            a function that gives streams, or a stream
    --model my_model.py:Net        a model, or what makes one

`docs/add-a-method.md` and `docs/add-a-debiaser.md` show such files. Only those that the user has named are executed
(`trusted_files.py`).
"""

import hashlib
import importlib.util
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from droptop.errors import BadRequest, DroptopError
from droptop.system import handed, trusted_files
from droptop.system.handed import Gone
from droptop.system.trusted_files import OwnFile, SourceLoader, own_file

SUFFIX = ".py"
INSTEAD = "DROPTOP_USER_FILES"  # in the environment, which processes of seeds inherit: files that stand for others
T = TypeVar("T")
_hidden: ContextVar[tuple[str, ...] | None] = ContextVar("hidden", default=None)
_importing: ContextVar[bool] = ContextVar("importing", default=False)


class Changed(BadRequest):
    """A file of the user's own that is not the one that a run began with."""


def is_file(name: str) -> bool:
    """Return whether a name is that of a user's file."""
    return name.partition(":")[0].endswith(SUFFIX)


@contextmanager
def hidden(*options: str) -> Iterator[None]:
    """Run nothing of the user's own inside this context: what only looks at a folder does as if it were gone.

    With options named, this is so for what these name, and for what an outer context hides.
    """
    outer = _hidden.get()
    token = _hidden.set(() if () in (outer, options) else (*(outer or ()), *options))
    try:
        yield
    finally:
        _hidden.reset(token)


def is_hidden(option: str) -> bool:
    """Return whether nothing is run here of what an option names."""
    options = _hidden.get()
    return options is not None and (not options or option in options)


@contextmanager
def instead(files: Mapping[str, str]) -> Iterator[None]:
    """Take other files in place of some, by path, inside this context and in processes that are started in it."""
    before = os.environ.get(INSTEAD)
    os.environ[INSTEAD] = json.dumps(dict(files))
    try:
        yield
    finally:
        if before is None:
            del os.environ[INSTEAD]
        else:
            os.environ[INSTEAD] = before


def place(name: str) -> Path:
    """Return the path of the file that a name is of, or of the one that stands in for it."""
    path = name.partition(":")[0]
    return Path(json.loads(os.environ.get(INSTEAD, "{}")).get(path, path))


def is_own(name: str) -> bool:
    """Return whether a name is that of a user's file, or of an object that was handed over in Python."""
    return is_file(name) or handed.is_object(name)


def is_there(name: str, option: str) -> bool:
    """Return whether a name can be loaded: a user's file may have been moved since it was run."""
    if is_hidden(option) and is_own(name):
        return False
    if handed.is_object(name):
        return handed.is_handed(option, name)
    return not is_file(name) or place(name).is_file()


def check_there(name: str, option: str) -> None:
    """Raise Gone if a name is that of a file which does not exist, or of an object that this process does not have."""
    if handed.is_object(name):
        handed.find(option, name)
    elif is_file(name) and not place(name).is_file():
        raise Gone(f"--{option} {name}: there is no such file")
    elif not is_there(name, option):
        raise Gone(f"--{option} {name} is not run by a command that only looks")


def absolute(name: str) -> str:
    """Return the name of a file with an absolute path, which is valid in any working folder; others as they are."""
    if not is_file(name):
        return name
    path, colon, chosen = name.partition(":")
    return f"{Path(path).expanduser().absolute()}{colon}{chosen}"


def paths_in(text: str) -> list[str]:
    """Return the paths of the user's files in a text, whole or in parts: `a.py+b.py,c.py` or `method=a.py:Mine`."""
    parts = dict.fromkeys([text, *re.split("[,+]", text)])
    names = dict.fromkeys(name for part in parts for name in (part, part.partition("=")[2]) if is_file(name))
    return list(dict.fromkeys(absolute(name).partition(":")[0] for name in names))


def named(*texts: str | None) -> None:
    """Vouch for the files in texts that the user has written: they may be executed, here and from then on."""
    paths = [path for text in texts if isinstance(text, str) for path in paths_in(text)]
    trusted_files.vouch(file for path in paths if (file := own_file(path, place(path))) is not None)


def load(name: str, base: type[T], option: str) -> type[T]:
    """Return the class derived from `base` that a file defines; raise BadRequest if it fails or has no such class."""

    def is_kind(value: Any) -> bool:
        return isinstance(value, type) and issubclass(value, base)

    kind: type[T] = load_one(name, option, [is_kind], f"class derived from droptop.{base.__name__}")
    return kind


def load_one(name: str, option: str, fitting: Sequence[Callable[[Any], bool]], what: str) -> Any:
    """Return the one public thing of a file that fits, or the one that its name chooses among those that fit.

    Of several tests in `fitting`, the first that anything passes decides. Raise BadRequest if the file fails, or has
    no such thing; `what` says in words what it should have.
    """
    path, _, chosen = absolute(name).partition(":")
    module = _module(Path(path), option)
    public = {
        key: value
        for key, value in vars(module).items()
        if not key.startswith("_")
        and (not isinstance(value, type | FunctionType) or value.__module__ == module.__name__)
    }
    found = [{key: value for key, value in public.items() if fits(value)} for fits in fitting]
    if chosen and (fit := [things for things in found if chosen in things]):
        return fit[0][chosen]
    things = next(filter(None, found), {})
    if len(things) == 1 and not chosen:
        return next(iter(things.values()))
    known = ", ".join(things) or f"no {what}"
    hint = f"; choose one: {path}:{next(iter(things))}" if len(things) > 1 and not chosen else ""
    raise BadRequest(f"--{option} {name}: the file defines {known}{hint}")


def call(function: Callable[..., T], name: str, option: str, *args: Any) -> T:
    """Return what a user's function gives; whatever it raises becomes a BadRequest of one line."""
    try:
        return function(*args)
    except DroptopError:
        raise
    except Exception as error:
        code = getattr(function, "__code__", None)
        file = code.co_filename if code is not None else name.partition(":")[0]
        raise BadRequest(f"--{option} {name}: {_line(error, file)}") from error


def name_of(function: Any) -> str | None:
    """Return the name `FILE.py:NAME` by which other processes can have a function or class; None if they cannot.

    They can if it stands at the top of a file that is no part of a package.
    """
    name, module = getattr(function, "__qualname__", "."), sys.modules.get(getattr(function, "__module__", ""))
    file = getattr(module, "__file__", None)
    alone = module is not None and "." not in str(getattr(function, "__module__", "."))
    if alone and file and file.endswith(SUFFIX) and getattr(module, name, None) is function:
        return f"{Path(file).absolute()}:{name}"
    return None


def sha256(*names: str) -> str | None:
    """Return the SHA-256 of the files among some names, one after the other, which runs record.

    None where all names are built in, or a file is missing.
    """
    files = [place(name) for name in names if is_file(name)]
    if not files or not all(file.is_file() for file in files):
        return None
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _module(path: Path, option: str) -> ModuleType:
    """Import the file, once per process; whatever it raises becomes a BadRequest of one line.

    Raise Untrusted if nobody has vouched for it.
    """
    source = str(place(str(path)))
    name = f"droptop_{option}_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    if name in sys.modules and not is_hidden(option):
        return sys.modules[name]
    check_there(str(path), option)
    data = Path(source).read_bytes()
    trusted_files.check(OwnFile(str(path), hashlib.sha256(data).hexdigest()), option)
    spec = importlib.util.spec_from_file_location(name, source, loader=SourceLoader(name, source, data))
    assert spec is not None  # its name ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    if str(path.parent) not in sys.path:  # files beside it can be imported, as by a script
        sys.path.append(str(path.parent))
    token = _importing.set(True)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise BadRequest(f"--{option} {path}: {_line(error, source)}") from None
    finally:
        _importing.reset(token)
    return module


def refuse_while_importing() -> None:
    """Raise BadRequest while a user's file is imported: it would start what it is imported for."""
    if _importing.get():
        raise BadRequest(
            'runs are started under `if __name__ == "__main__":` in a file that defines what they need, since every '
            "process of a seed imports that file"
        )


def _line(error: Exception, file: str) -> str:
    """Return an error in one line, with the last line of a file that it went through."""
    where = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    line = error.lineno if isinstance(error, SyntaxError) else where[-1] if where else "?"
    return f"line {line}: {type(error).__name__}: {error}"
