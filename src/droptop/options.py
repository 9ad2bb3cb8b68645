"""Options as people name them: the fields of nested dataclasses, by path.

Any end of a path that is not ambiguous names its option: `alpha`, `intensity.alpha` and `droptop.intensity.alpha` are
the same.
"""

import dataclasses
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from droptop.errors import require

SECTIONS = ("stream", "net", "learner", "droptop")  # tables of a run's configuration
NO_DEBIAS = "none"
# Options that no result depends on.
WITHOUT_EFFECT = ("seeds", "first_seed", "root", "checkpoint_seconds", "parallel", "maps", "maps_seeds", "log")
# Options younger than runs that people have, and what those did: at these values a run is still the same run.
YOUNGER = {"droptop.attention_norm": "batch", "stream.hold_out": 0.0}


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """Every option by its path; those of `RunOptions` stand at the top."""
    flat: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        path = prefix + ("" if field.name == "options" else field.name)
        if dataclasses.is_dataclass(value):
            flat |= flatten(value, path and path + ".")
        elif path not in SECTIONS:
            flat[path] = value
    return flat


def ending_in(name: str, paths: Iterable[str]) -> list[str]:
    """Those of some options' paths that a name is an end of, in Python or as a flag."""
    wanted = name.replace("-", "_")
    return [path for path in paths if path == wanted or path.endswith("." + wanted)]


def replaced(config: Any, values: dict[str, Any]) -> Any:
    """A dataclass with the options at some paths below it set, all at once."""
    own = {path: value for path, value in values.items() if "." not in path}
    for name, value in own.items():
        _check_type(name, get_type_hints(type(config))[name], value)
    for section in {path.partition(".")[0] for path in values.keys() - own.keys()}:
        below = {path.partition(".")[2]: v for path, v in values.items() if path.startswith(section + ".")}
        own[section] = replaced(getattr(config, section), below)
    return dataclasses.replace(config, **own)


def _check_type(name: str, hint: Any, value: Any) -> None:
    if isinstance(hint, UnionType):
        if value is None:
            return
        hint = next(kind for kind in get_args(hint) if kind is not NoneType)
    if get_origin(hint) is Literal:
        require(value in get_args(hint), name, f"one of {', '.join(map(str, get_args(hint)))}", value)
    kinds = {float: (int, float), int: (int,), bool: (bool,), str: (str,)}.get(hint)
    if kinds is not None:
        fits = isinstance(value, kinds) and isinstance(value, bool) == (hint is bool)
        words = {float: "a number", int: "an integer", bool: "true or false", str: "a text"}
        require(fits, name, words[hint], repr(value))
