"""Defaults that are other ones on a CPU, so that a person can wait for a run of their own images.

on a CPU: width 16; --width 64, or --device cuda, gives what a GPU gets
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from droptop.options import ending_in, flag_of, flatten
from droptop.runs.config import Config, defaults
from droptop.streams import find


class Default(NamedTuple):
    """Hold the default of an option on a CPU, and on a GPU."""

    here: Any
    on_gpu: Any


def lighter(config: Config, given: Iterable[str]) -> dict[str, Default]:
    """Return the options, by path, in which a configuration is as a CPU has it by default and a GPU has not.

    Those that the user has given, by their names, are left out; so is a net that droptop does not build.
    """
    options = config.options
    is_light = options.device == "cpu" and config.builds_net and options.files_are_there
    if not (is_light and find(options.data).on_cpu):
        return {}
    here, on_gpu = (
        flatten(defaults(options.data, options.method, options.debias, device=device)) for device in ("cpu", "cuda")
    )
    set_here, names = flatten(config), list(given)
    return {
        path: Default(value, on_gpu[path])
        for path, value in here.items()
        if path != "device"
        and value == set_here[path] != on_gpu[path]
        and not any(ending_in(name, [path]) for name in names)
    }


def said_of(light: Mapping[str, Default]) -> str:
    """Return what to tell the user of such options, in one line; empty where there are none."""
    if not light:
        return ""
    here = ", ".join(f"{flag_of(path).removeprefix('--')} {default.here}" for path, default in light.items())
    flags = " ".join(f"{flag_of(path)} {default.on_gpu}" for path, default in light.items())
    return f"on a CPU: {here}; {flags}, or --device cuda, gives what a GPU gets"
