"""From flags and TOML to a configuration.

Two passes: the names of data, method and debias say which options there are; then tyro reads those, and writes the
help. Whatever is wrong with a request becomes one line.
"""

import contextlib
import dataclasses
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import arg

from droptop.cli.arguments import flag_of, read
from droptop.debias import DEBIAS
from droptop.errors import BadRequest, require, typed
from droptop.methods import METHODS
from droptop.options import flatten
from droptop.runs.config import Config, defaults, resolve
from droptop.streams import known_names
from droptop.system.toml_files import read_toml


def parse(command: str, args: list[str]) -> tuple[Config, Path]:
    """The configuration that a command line asks for, and the folder for its results."""
    file = _last(args, "--config")
    written = {} if file is None else read_toml(Path(file))
    if any(isinstance(value, list) for value in written.values()):  # which no option of a run is
        raise BadRequest(
            f"--config takes options of one run; {file} has lists, as a study has: "
            f"{typed('sweep', str(file), '--out', 'FOLDER')} runs that"
        )
    written.pop("command", None)
    chosen = {
        name: _last(args, f"--{name}") or str(written.get(name, default))
        for name, default in (("data", "fashion-sticker"), ("method", "er"), ("debias", "droptop"))
    }
    base = defaults(chosen["data"], chosen["method"], chosen["debias"])
    tokens = [token for path, value in written.items() for token in as_tokens(path, value, base, f"{file}: ")]
    config, out = _second_pass(command, base, tokens + _canonical(args, base))
    config.check_kappa_0(base)
    return config, out


def _canonical(args: list[str], base: Config) -> list[str]:
    """The same command line with every option under the one name that tyro knows it by."""
    values, tokens, rest, given = flatten(base), [], list(args), set[str]()
    while rest:
        token = rest.pop(0)
        name, equals, value = token.removeprefix("--").partition("=")
        if not token.startswith("--") or name in ("help", "config", "out"):
            tokens.append(token)
            continue
        path, off = _switched(name, base)
        given.add(path)
        if isinstance(values[path], bool):
            if not equals:
                value = rest.pop(0) if rest and rest[0].lower() in ("true", "false") else "true"
            require(value.lower() in ("true", "false"), name, "true or false", value)
            tokens += as_tokens(path, off != (value.lower() == "true"), base)
        else:
            tokens += [flag_of(path), *([value] if equals else [])]
    for path in ("stream.tasks", "stream.class_order"):  # files may have all of them, as those that runs write do
        require(not {path, "stream.split"} <= given, "split", f"the place of {flag_of(path)}", "both")
    return tokens


def _switched(name: str, base: Config) -> tuple[str, bool]:
    """The path of an option, and whether its name turns it off: `--no-graphs`, `--intensity.no-reference`, but not
    `--no-lr`."""
    table, dot, last = name.rpartition(".")
    with contextlib.suppress(BadRequest):
        path = resolve(table + dot + last.removeprefix("no-"), base)
        if last.startswith("no-") and isinstance(flatten(base)[path], bool):
            return path, True
    return resolve(name, base), False


def _last(args: list[str], flag: str) -> str | None:
    """The last value given for a flag, as `--flag value` or `--flag=value`."""
    values = [
        after if token == flag else token.partition("=")[2]
        for token, after in pairwise([*args, ""])
        if token.partition("=")[0] == flag
    ]
    if args and args[-1] == flag:
        raise BadRequest(f"{flag} takes a value")
    return values[-1] if values else None


def as_tokens(name: str, value: Any, config: Config, where: str = "") -> list[str]:
    """An option as command-line tokens."""
    flag = flag_of(resolve(name, config, where))
    if isinstance(value, bool):
        prefix, dot, last = flag.removeprefix("--").rpartition(".")
        return [f"--{prefix}{dot}{'' if value else 'no-'}{last}"]
    return [flag, str(value)]


def _second_pass(command: str, base: Config, tokens: list[str]) -> tuple[Config, Path]:
    sections = [
        (field.name, value) for field in dataclasses.fields(base) if (value := getattr(base, field.name)) is not None
    ]
    where = [
        ("out", Annotated[Path, arg(help="Folder for the results, new or empty.")]),
        ("config", Annotated[Path | None, arg(help="TOML file of options; the command line wins over it.")], None),
    ]
    request_type = dataclasses.make_dataclass(
        "Request",
        where
        + [(name, Annotated[type(value), arg(name="")], dataclasses.field(default=value)) for name, value in sections],
    )
    streams = "\n".join(f"  {name:30} {about}" for name, about in known_names().items())
    known = f"--data\n{streams}\n--method\n  {', '.join(METHODS)}\n--debias\n  none, {', '.join(DEBIAS)}"
    parsed: Any = read(request_type, tokens, f"droptop {command}", known)
    values = {name: getattr(parsed, name) for name, _ in sections}
    return Config(**{"droptop": None} | values), parsed.out
