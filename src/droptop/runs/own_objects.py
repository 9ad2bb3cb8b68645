"""Streams and models that a user gives to `run`, `compare` and `resume` in Python, and the names that stand for them.

A function or class at the top of a Python file is named by that file, `FILE.py:NAME`, since other processes can have
it. Anything else is an object, `object:NAME`, and what needs it is done in this process.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import nn

from droptop.errors import BadRequest, a_kind
from droptop.streams import Stream
from droptop.system import handed, user_files

Data = str | Stream | Callable[[int], Stream]  # a name, a stream, or what gives one for a seed
Model = str | nn.Module | Callable[[], nn.Module]  # a file, a model to copy, or what makes one
TAKES = {
    "data": "a name, a Stream, or a function of a seed that gives one",
    "model": "a torch.nn.Module, or a function or class that makes one",
}


@contextmanager
def handed_over(began: Mapping[str, Any] | None = None, **given: Any) -> Iterator[dict[str, str]]:
    """Have what is given found by its name inside this context; give the names by option, without what is None.

    Python files that it is in are the user's: they may be executed, here and from then on.

    Args:
        began: The options of the run that is gone on with, whose names for objects stand for these.
        given: What the user gave as `data` and as `model`.

    Raises:
        BadRequest: Something is of another kind, or the run began with something else than an object.
    """
    names, objects = dict[str, str](), dict[tuple[str, str], Any]()
    for option, value in given.items():
        if value is None:
            continue
        check_kind(option, value)
        name = value if isinstance(value, str) else user_files.name_of(value) or label(value, option)
        before = None if began is None else began.get(option)
        if before is not None and not isinstance(value, str):
            if handed.is_object(before):
                name = before
            elif handed.is_object(name):
                raise BadRequest(f"{option} takes what the run began with, {before}, not an object")
        names[option] = name
        if handed.is_object(name) and not isinstance(value, str):
            objects[option, name] = value
    user_files.named(*names.values())
    with handed.handing(objects):
        yield names


def check_kind(option: str, value: Any) -> None:
    """Raise BadRequest if a value can be no stream, or no model."""
    kind = Stream if option == "data" else nn.Module
    if not (isinstance(value, str | kind) or callable(value)):
        raise BadRequest(f"{option} takes {TAKES[option]}, not {described(value)}")
    if option == "data" and isinstance(value, nn.Module | type):
        raise BadRequest(f"data takes {TAKES['data']}, not {described(value)}")


def described(value: Any) -> str:
    """Return what a value is, for a message."""
    return f"the class {value.__name__}" if isinstance(value, type) else a_kind(type(value))


def label(value: Any, option: str) -> str:
    """Return the name that stands for an object."""
    name = value.name if isinstance(value, Stream) else getattr(value, "__name__", type(value).__name__)
    return handed.OBJECT + (option if name == "<lambda>" else str(name))
