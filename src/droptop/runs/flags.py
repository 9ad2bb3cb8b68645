"""A configuration as flags of the command line: what to type to make a run again.

Which options differ from what the names of data, method and debias stand for, only the learners know, and they load
torch. So a run's environment.json records its flags, and whoever only reads the folder takes them from there
(`noted.recorded_flags`).
"""

import shlex
from pathlib import Path
from typing import Any

from droptop.errors import BadRequest
from droptop.options import flag_of, flatten
from droptop.runs.config import Config, defaults, resolve
from droptop.runs.noted import flags_hold_for
from droptop.runs.plan import Plan, plan_of
from droptop.runs.run_options import RunOptions
from droptop.system.files import write_json
from droptop.system.json_files import read_json


def as_tokens(name: str, value: Any, config: Config, where: str = "") -> list[str]:
    """Return an option and its value as tokens of a command line; `where` begins the message of a refusal."""
    flag = flag_of(resolve(name, config, where))
    if isinstance(value, bool):
        prefix, dot, last = flag.removeprefix("--").rpartition(".")
        return [f"--{prefix}{dot}{'' if value else 'no-'}{last}"]
    return [flag, str(value)]


def flags_of(plan: Plan) -> list[str] | None:
    """Return the flags of a plan: its names, and every option that differs from what these stand for.

    None where flags cannot say it: arms of a comparison that have options of their own. Where a user's file is gone,
    nobody can tell what names stand for: then every option is among the flags.
    """
    reference, *others = plan.arms.values()
    last = plan.arms[list(plan.arms)[-1]]
    data, method, debias = last.options.data, last.options.method, last.options.debias
    names = {"data": data, "method": method, "debias": debias}
    if plan.command == "run":
        return tokens_of(names | unusual(last), dict.fromkeys((*names, *unusual(last)), last))
    said = {} if plan.against is None else said_by(reference, last)
    options: dict[str, Any] = {}
    homes = dict.fromkeys(names, last)
    for arm in plan.arms.values():
        own = {path: value for path, value in unusual(arm).items() if arm is not reference or path not in said}
        options |= own
        homes |= dict.fromkeys(own, arm)
    names["debias"] = debias = ",".join(arm.options.debias for arm in others)
    against = ",".join(f"{flag_of(path).removeprefix('--')}={value}" for path, value in said.items()) or None
    flags = [*tokens_of(names | options, homes), *([] if against is None else ["--against", against])]
    if any(not arm.options.files_are_there for arm in plan.arms.values()):
        return flags
    try:
        same = plan_of("compare", data, method, debias, options, against=against) == plan
    except BadRequest:
        return None
    return flags if same else None


def said_by(reference: Config, other: Config) -> dict[str, Any]:
    """Return what `--against` says of a reference: method and debiasing, or else the options in which it differs."""
    names = {name: getattr(reference.options, name) for name in ("method", "debias")}
    there, here = flatten(reference), flatten(other)
    if any(here[name] != value for name, value in names.items()):
        return names
    return {path: value for path, value in there.items() if here.get(path) != value}


def unusual(config: Config) -> dict[str, Any]:
    """Return the options, by path, that differ from what the three names of a configuration stand for."""
    options = config.options
    names = {"data": options.data, "method": options.method, "debias": options.debias}
    usual: dict[str, Any] = dict(names)
    if options.files_are_there:
        usual = flatten(defaults(options.data, options.method, options.debias, device=options.device)) | {
            "device": RunOptions.device
        }
    unused = ("stream.tasks", "stream.class_order") if config.stream.split else ()  # refused beside a split
    return {
        path: value
        for path, value in flatten(config).items()
        if path not in (*names, *unused) and value not in (None, usual.get(path))
    }


def tokens_of(options: dict[str, Any], homes: dict[str, Config]) -> list[str]:
    """Return options by path as tokens; `homes` has a configuration in which each is an option."""
    return [token for path, value in options.items() for token in as_tokens(path, value, homes[path])]


def record_flags(place: Path, plan: Plan) -> None:
    """Record in environment.json the flags that make a folder again, with the config.toml and droptop they hold for.

    Both files must be there, and up to date. With a user's own file they are those for the file that the run began
    with, which may be gone later. They are text, as other values are, so that earlier versions can show the folder.
    """
    if (flags := flags_of(plan)) is None:
        return
    path = place / "environment.json"
    text = shlex.join(flags)
    record = {"flags": text, "flags_hold_for": flags_hold_for(place, text)}
    write_json(path, read_json(path) | record)
