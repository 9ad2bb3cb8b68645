"""Objects that a user hands over in Python, a stream or a model, by what stands for them in config.toml: `object:NAME`.

No other process has them: what needs one is done in this process, while `handing` it over.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from droptop.errors import BadRequest

OBJECT = "object:"
AGAIN = {
    "data": "droptop.resume(FOLDER, data=...) hands it over again",
    "model": "droptop.resume(FOLDER, model=...) or droptop.load_learner(FOLDER, model=...) hands it over again",
}
_objects: dict[tuple[str, str], Any] = {}  # by option and name


class Gone(BadRequest):
    """Something of the user's own is not here: its results can be shown, but nothing more can be run."""


@contextmanager
def handing(objects: Mapping[tuple[str, str], Any]) -> Iterator[None]:
    """Have objects found by option and name inside this context."""
    before = dict(_objects)
    _objects.update(objects)
    try:
        yield
    finally:
        _objects.clear()
        _objects.update(before)


def is_object(name: str | None) -> bool:
    """Return whether a name stands for an object."""
    return name is not None and name.startswith(OBJECT)


def is_handed(option: str, name: str) -> bool:
    """Return whether this process has the object that a name stands for."""
    return (option, name) in _objects


def find(option: str, name: str) -> Any:
    """Return the object that a name stands for; raise Gone if this process does not have it."""
    if not is_handed(option, name):
        raise Gone(f"--{option} {name} was an object in Python, which is not in this folder: {AGAIN[option]}")
    return _objects[option, name]
