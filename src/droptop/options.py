"""Options as people name them: the fields of nested dataclasses, by path.

An option may be named by the end of its path where only one path ends so: `alpha`, `intensity.alpha` and
`droptop.intensity.alpha` are the same option.
"""

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from droptop.errors import require

SECTIONS = ("stream", "net", "learner", "droptop")  # tables of a configuration whose options need no prefix as flags
UNNAMED = ("options", "members")  # parts of a configuration that are no tables of their own
NO_DEBIAS = "none"
NO_CUE = "none"  # of `stream.shortcut`
BIASED, REMOVED, RANDOM = "biased", "removed", "random"  # test sets with the cue of training, without, at random
MOST_SEEDS = 10_000  # of a run
# Options that do not change any result.
WITHOUT_EFFECT = (
    "seeds",
    "first_seed",
    "root",
    "checkpoint_seconds",
    "parallel",
    "maps",
    "maps_seeds",
    "log",
    "learner.preset",  # only a name for other options
)
# Options that older runs do not have, and the values that stand for what those runs did.
YOUNGER = {
    "droptop.attention_norm": "batch",
    "droptop.mask_rows": "all",
    "droptop.memory_attention": "fresh",
    "droptop.remainder": "random",
    "stream.hold_out": 0.0,
    "stream.shortcut": "none",
    "stream.shortcut_correlation": 0.95,
    "stream.shortcut_strength": None,
    "stream.shortcut_size": None,
    "learner.sampling": "filled",
    "learner.renew_optimizer": False,
    "learner.preset": "paper",
    "learner.average": False,
    "learner.average_decay": 0.99,
    "model": None,
    "first": None,
    "last": None,
    "pretrained": False,
    "net.input_size": None,
}
# Of these, the options that not every run has, and an older one that a run has where it has them.
BESIDE = {
    "droptop.attention_norm": "droptop.gamma",
    "droptop.mask_rows": "droptop.gamma",
    "droptop.memory_attention": "droptop.gamma",
    "droptop.remainder": "droptop.gamma",
    "learner.sampling": "learner.per_class",
    "learner.renew_optimizer": "learner.beta_1",
    "net.input_size": "net.stem",
}


NEXT_OPTION = re.compile(r",(?=[\w.-]+=)")  # values may hold commas


def named_values(text: str) -> list[tuple[str, str]]:
    """Return what a text such as `er,lr=0.1` says, as pairs of option and value; "" where a value has no option."""
    first, *rest = NEXT_OPTION.split(text)
    pairs = [first.partition("=")] if "=" in first else [("", "", word) for word in first.split(",")]
    return [(name, value) for name, _, value in [*pairs, *(part.partition("=") for part in rest)]]


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """Return every option of a configuration by its path; those of `RunOptions` have no prefix."""
    flat: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        path = prefix + ("" if field.name in UNNAMED else field.name)
        if dataclasses.is_dataclass(value):
            flat |= flatten(value, path and path + ".")
        else:
            flat[path] = value
    return flat


def younger_of(options: Iterable[str]) -> dict[str, Any]:
    """Return the options that older runs do not have, of a run with these options by path, with their values."""
    paths = set(options)
    return {path: value for path, value in YOUNGER.items() if path not in BESIDE or BESIDE[path] in paths}


def ending_in(name: str, paths: Iterable[str]) -> list[str]:
    """Return the paths that end in a name, which is written as in Python or as a flag.

    Of several, those whose flag is that very name: `share` of a debiaser hides none of a learner's.
    """
    wanted = name.replace("-", "_")
    matches = [path for path in paths if path == wanted or path.endswith("." + wanted)]
    return [path for path in matches if flag_of(path) == flag_of(wanted)] or matches


def name_of(path: str) -> str:
    """Return what people call an option: its path without the section; a debiaser's own has the debiaser's name."""
    head, _, rest = path.partition(".")
    return rest if head in SECTIONS else path


def flag_of(path: str) -> str:
    """Return an option's flag."""
    return "--" + name_of(path).replace("_", "-")


def help_of_fields(kind: type) -> dict[str, str]:
    """Return the string under each field of a dataclass, and of those that it extends: what the option means.

    A class that was made without source, as for the options of a file that is gone, has none.
    """
    strings: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        try:
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        except (OSError, TypeError):
            continue
        assert isinstance(tree, ast.ClassDef)
        for field, string in pairwise(tree.body):
            match field, string:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    strings[name] = " ".join(text.split())
    return strings


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    """Return the types of a dataclass's fields; a sweep of thousands of cells asks for the same few."""
    return get_type_hints(kind)


def replaced(config: Any, values: dict[str, Any]) -> Any:
    """Return a copy of a nested dataclass with new values at some paths; refuse values of the wrong type."""
    fields = {path: value for path, value in values.items() if "." not in path}
    kind: Any = type(config)
    for name, value in fields.items():
        _check_type(name, hints_of(kind)[name], value)
    for section in {path.partition(".")[0] for path in values.keys() - fields.keys()}:
        below = {path.partition(".")[2]: v for path, v in values.items() if path.startswith(section + ".")}
        fields[section] = replaced(getattr(config, section), below)
    return dataclasses.replace(config, **fields)


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
