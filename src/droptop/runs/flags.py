"""A configuration as flags of the command line: what to type to make a run again.

Which options differ from what the names of data, method and debias stand for, only the learners know, and they load
torch. So a run's environment.json records its flags, and whoever only reads the folder takes them from there
(`folder.recorded_flags`).
"""

import json
import shlex
from pathlib import Path
from typing import Any

from droptop.options import flag_of, flatten
from droptop.runs.config import Config, defaults, resolve
from droptop.runs.folder import flags_hold_for
from droptop.system.files import write_json


def as_tokens(name: str, value: Any, config: Config, where: str = "") -> list[str]:
    """Return an option and its value as tokens of a command line; `where` begins the message of a refusal."""
    flag = flag_of(resolve(name, config, where))
    if isinstance(value, bool):
        prefix, dot, last = flag.removeprefix("--").rpartition(".")
        return [f"--{prefix}{dot}{'' if value else 'no-'}{last}"]
    return [flag, str(value)]


def flags_of(config: Config) -> list[str]:
    """Return the flags of a configuration: its three names, and every option that differs from what these stand for.

    Where a user's file is gone, nobody can tell what they stand for: then every option is among the flags.
    """
    options = config.options
    names = {"data": options.data, "method": options.method, "debias": options.debias}
    known = options.files_are_there
    base = defaults(options.data, options.method, options.debias) if known else config
    usual = flatten(base) if known else names
    unused = ("stream.tasks", "stream.class_order") if config.stream.split else ()  # refused beside a split
    others = {
        path: value
        for path, value in flatten(config).items()
        if value not in (None, usual.get(path)) and path not in unused
    }
    return [token for path, value in (names | others).items() for token in as_tokens(path, value, base)]


def record_flags(run: Path, config: Config) -> None:
    """Record in environment.json the flags that make a run again, with the config.toml and droptop that they hold for.

    Both files must be there, and up to date. The flags of a user's own file depend on that file: they are not
    recorded. They are text, as other values are, so that earlier versions can show the folder.
    """
    if config.options.user_files():
        return
    path = run / "environment.json"
    record = {"flags": shlex.join(flags_of(config)), "flags_hold_for": flags_hold_for(run)}
    write_json(path, json.loads(path.read_text()) | record)
