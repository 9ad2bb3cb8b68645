"""What `--against` says: the arm that all others of a comparison are compared with.

    --against droptop                a debiasing
    --against er                     a method
    --against width=20               an option with its value; commas separate several: --against er,lr=0.1
    --against slow                   an arm of a file, headed [arms.slow]

What it does not say is as in the other arms.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from droptop.debias import KNOWN
from droptop.errors import BadRequest, meant, require
from droptop.methods import METHODS
from droptop.options import NO_DEBIAS, flatten, named_values
from droptop.runs.config import Config
from droptop.system import user_files
from droptop.system.toml_files import parse_toml

UNFIT = re.compile(r"[^\w+=.-]")  # for the name of an arm


def reference_options(against: str) -> dict[str, Any]:
    """Return the options that `--against` says, by name; refuse what is neither debiasing, method nor OPTION=VALUE."""
    options: dict[str, Any] = {}
    for name, text in named_values(against):
        path = name or kind_of(text)
        require(path not in options, "against", "one arm", against)
        options[path] = value_of(text) if name else text
    return options


def kind_of(name: str) -> str:
    """Return which option a name is a value of, debias or method; refuse a file, which may define either."""
    if name in METHODS:
        return "method"
    parts = name.split("+")
    if user_files.is_file(name) and len(parts) == 1:
        raise BadRequest(f"--against takes method={name} or debias={name}, to say what the file defines")
    known = (NO_DEBIAS, *KNOWN)
    unknown = [part for part in parts if part not in known and not user_files.is_file(part)]
    hint = meant(unknown[0], (*known, *METHODS)) if unknown else ""
    require(not unknown, "against", "a debiasing, a method or OPTION=VALUE", name + hint)
    return "debias"


def value_of(text: str) -> Any:
    """Return a value as TOML has it, or else the text."""
    try:
        value = parse_toml(f"value = {text}")["value"]
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text


def usual_debias(arms: Mapping[str, Any] | None, against: str | None) -> str:
    """Return what is debiased with where nobody says: nothing, where arms differ in something else; else DropTop."""
    other = against is not None and not arms and reference_options(against).keys() != {"debias"}
    return NO_DEBIAS if arms or other else "droptop"


def differing(paths: Iterable[str], configs: Iterable[Config]) -> list[str]:
    """Return those of these options in which configurations differ; the method where they differ in none."""
    flat = [flatten(config) for config in configs]
    wanted = set(paths)
    found = [path for path in flat[0] if path in wanted and len({str(options.get(path)) for options in flat}) > 1]
    return found or ["method"]


def arm_name(config: Config, paths: Iterable[str]) -> str:
    """Return the name of an arm by its values of some options, such as `er`, `droptop` or `er-lr=0.1`."""
    options = flatten(config)
    return "-".join(part_of_name(path, options[path]) for path in paths if options.get(path) is not None)


def part_of_name(path: str, value: Any) -> str:
    """Return the value of an option as a part of an arm's name, in which a file goes without its folder."""
    if path == "debias":
        return debias_name(value)
    if path == "method":
        return stem(value)
    return UNFIT.sub("_", f"{path.rpartition('.')[2]}={Path(value).name if path == 'weights' else value}")


def debias_name(debias: str) -> str:
    """Return the name of an arm by its debiasing, in which a file has the name of its text before `.py`."""
    return "+".join(map(stem, debias.split("+")))


def stem(name: str) -> str:
    """Return a name; of a user's file, its text before `.py`."""
    return Path(name).stem if user_files.is_file(name) else name
