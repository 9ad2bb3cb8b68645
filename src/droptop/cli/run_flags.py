"""From flags and TOML to a plan, in two passes.

The first pass reads the names of data, method and debias, which decide what options there are; the second reads those
options, by tyro, or writes the help of them. Whatever is wrong with a request is said in one line.
"""

import contextlib
import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from tyro.conf import arg

from droptop.cli import help
from droptop.cli.arguments import read
from droptop.debias import MEMBERS
from droptop.errors import BadRequest, require, typed
from droptop.methods import METHODS
from droptop.nets import ViTConfig
from droptop.options import SECTIONS, flag_of, flatten
from droptop.recipes import RECIPES
from droptop.runs.config import Config, resolve, settings_of
from droptop.runs.flags import as_tokens
from droptop.runs.folder import Command
from droptop.runs.plan import Plan, arms_made, arms_wanted, plan_of
from droptop.runs.reference import usual_debias
from droptop.runs.run_options import RunOptions
from droptop.runs.trust import FILES, admit, named
from droptop.streams import known_names
from droptop.sweeps.tuning.arms import Alike
from droptop.sweeps.tuning.space import said_of
from droptop.system.toml_files import leaves, read_tables

CONFIG_HELP = {
    "run": "TOML file of options, over which the command line wins; by default none.",
    "compare": "TOML file of options, over which the command line wins, and of arms, a table [arms.NAME] each; by "
    "default none.",
}
ABOUT = {
    "run": "trains one method on one stream",
    "compare": "trains a method with and without debiasing, and says whether that helped",
}
# What most people need; `--help` shows these alone.
SHORT = {
    *("out", "data", "method", "debias", "seeds", "limit", "device", "against"),
    *("stream.tasks", "stream.batch", "stream.shortcut", "stream.image_size", "net.width"),
    *("learner.lr", "learner.memory", "learner.iterations", "droptop.gamma"),
}
NEEDED_BY_A_VIT = {"weights"}
AGAINST = (
    "Reference: a debiasing, a method, an option with its value (width=20), or an arm of the file; by default none."
)
TUNE = "Tune every arm first, by N trials each, over the same space and on the same held-out training images."
OVER = (
    "An option to tune and its values, beside --tune: lr=log:0.003:0.3, momentum=0,0.9. Give it once per option; by "
    "default the learning rate and momentum."
)
TUNE_FOR = "Tune this arm alone, such as none, and give its options to all: usual, and not fair."
OF_TUNING = ("tune", "over", "tune-for")
TRUST = "Execute Python files that only the file of --config names. Read them first."
WITHOUT_PATH = (  # flags of no option
    *("help", "help-all", "config", "out", "against", "equal-cost", "no-equal-cost", "trust", "no-trust", *OF_TUNING),
)


class Asked(NamedTuple):
    """Hold what a command line asks for."""

    plan: Plan
    out: Path
    equal_cost: bool  # are plain arms that cost as much as the others to be added?
    alike: Alike | None = None  # how arms are to be tuned, if they are


def parse(command: Command, args: list[str]) -> Asked:
    """Return what a command line asks for: the arms, and the folder for their results.

    Vouch for Python files that it names; refuse those that only its TOML file names, unless they are trusted.
    """
    over, args = (said_of(values_of(args, "--over")), without(args, "--over")) if command == "compare" else ({}, args)
    file = last(args, "--config")
    tables = {} if file is None else read_tables(Path(file))
    arms = {} if last(args, "--debias") else {name: leaves(table) for name, table in arms_of(tables, file).items()}
    written = {path: value for path, value in leaves(tables).items() if path.partition(".")[0] != "arms"}
    if command == "run" and "arms" in tables:
        raise BadRequest(f"--config takes options of one run; {file} has those of a comparison's arms")
    if any(isinstance(value, list) for value in written.values()):  # no option of a run takes a list
        raise BadRequest(
            f"--config takes options of one run; {file} has lists, as a study has: "
            f"{typed('sweep', str(file), '--out', 'FOLDER')} runs that"
        )
    noted = written.pop("command", command)
    if noted != command:
        warnings.warn(
            f"{file} is what one {typed(str(noted))} was asked for; {typed(command)} takes its options", stacklevel=2
        )
    against = _against(command, args, written, arms)
    words = {name: last(args, f"--{name}") for name in FILES}
    named(words)
    unsaid = {path: value for path, value in written.items() if words.get(path) is None}
    admit(Path(file or ""), [unsaid, *arms.values()], "--trust" in args, "the same command with --trust")
    usual = {"data": "fashion-sticker", "method": "er", "debias": usual_debias(arms, against)}
    data, method, debias = (last(args, f"--{name}") or str(written.get(name, usual[name])) for name in usual)
    device = {"device": last(args, "--device") or written.get("device", RunOptions.device)}
    base = with_members_of_all(arms_made(arms_wanted(command, debias, arms, against), data, method, debias, device))
    given = {resolve(path, base, f"{file}: "): value for path, value in written.items()}
    tokens = [token for path, value in given.items() for token in as_tokens(path, value, base, f"{file}: ")]
    typed_in, paths = _canonical(args, base)
    config, own = _second_pass(command, base, tokens + typed_in)
    values = flatten(config)
    options = {path: values[path] for path in {*given, *paths} - usual.keys()}
    plan = plan_of(command, data, method, debias, options, arms, against=against)
    tune, tune_for = getattr(own, "tune", None), getattr(own, "tune_for", None)
    if tune is None and (over or tune_for):
        raise BadRequest("--over and --tune-for go with --tune N, a number of trials")
    require(tune is None or tune >= 1, "tune", "a number of trials from 1", tune)
    alike = None if tune is None else Alike(tune, over, tune_for)
    return Asked(plan, own.out, getattr(own, "equal_cost", False), alike)


def _against(command: Command, args: list[str], written: dict[str, Any], arms: dict[str, Any]) -> str | None:
    """Return what the reference of a comparison is, and take it out of what a file says; None for the plain arm.

    The name of an arm in a file holds no longer where --debias takes the place of these arms.
    """
    if command == "run":
        return None
    noted, named = written.pop("against", None), last(args, "--against")
    holds = noted is not None and (bool(arms) or not last(args, "--debias"))
    return named if named is not None else str(noted) if holds else None


def arms_of(tables: dict[str, Any], file: str | None) -> dict[str, Any]:
    """Return the [arms.NAME] tables of a TOML file; raise BadRequest for anything else by that name."""
    arms = tables.get("arms", {})
    if not isinstance(arms, dict) or not all(isinstance(table, dict) for table in arms.values()):
        raise BadRequest(f"{file} takes a table per arm, headed [arms.NAME]")
    return arms


def with_members_of_all(arms: dict[str, Config]) -> Config:
    """Return the configuration of the last arm with the debiasers of all arms, which has every option of any."""
    *_, last = arms.values()
    members = {name: settings for arm in arms.values() for name, settings in vars(arm.members).items()}
    return dataclasses.replace(last, members=settings_of(members | vars(last.members)))


def _canonical(args: list[str], base: Config) -> tuple[list[str], set[str]]:
    """Return the same command line with every option under the one name that tyro knows, and the paths of all."""
    values, tokens, rest, given = flatten(base), [], list(args), set[str]()
    while rest:
        token = rest.pop(0)
        name, equals, value = token.removeprefix("--").partition("=")
        if not token.startswith("--") or name in WITHOUT_PATH:
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
    for path in ("stream.tasks", "stream.class_order"):  # a file may have all of them, as config.toml does
        require(not {path, "stream.split"} <= given, "split", f"the place of {flag_of(path)}", "both")
    return tokens, given


def _switched(name: str, base: Config) -> tuple[str, bool]:
    """Return the path of an option, and whether its name turns it off.

    `--no-graphs` and `--intensity.no-reference` do; `--no-lr` is refused, since lr is not true or false.
    """
    table, dot, last = name.rpartition(".")
    with contextlib.suppress(BadRequest):
        path = resolve(table + dot + last.removeprefix("no-"), base)
        if last.startswith("no-") and isinstance(flatten(base)[path], bool):
            return path, True
    return resolve(name, base), False


def last(args: list[str], flag: str) -> str | None:
    """Return the last value given for a flag, as `--flag value` or `--flag=value`; None where it is not given."""
    values = [
        after if token == flag else token.partition("=")[2]
        for token, after in pairwise([*args, ""])
        if token.partition("=")[0] == flag
    ]
    if args and args[-1] == flag:
        raise BadRequest(f"{flag} takes a value")
    return values[-1] if values else None


def values_of(args: Sequence[str], flag: str) -> list[str]:
    """Return all values given for a flag, in their order."""
    values, tokens = list[str](), list(args)
    while tokens:
        name, equals, value = tokens.pop(0).partition("=")
        if name == flag:
            if not equals and not tokens:
                raise BadRequest(f"{flag} takes a value")
            values.append(value if equals else tokens.pop(0))
    return values


def without(args: Sequence[str], flag: str) -> list[str]:
    """Return a command line without a flag and its values."""
    at = [place for place, token in enumerate(args) if token.partition("=")[0] == flag]
    gone = {place + more for place in at for more in range(1 + ("=" not in args[place]))}
    return [token for place, token in enumerate(args) if place not in gone]


def _second_pass(command: Command, base: Config, tokens: list[str]) -> tuple[Config, Any]:
    """Return the configuration, and what has the other options such as `out`, from tokens under tyro's names.

    Options that no token names are as in `base`.
    """
    sections = {"options": base.options, "stream": base.stream, "net": base.net, "learner": base.learner}
    members = vars(base.members)
    where: list[Any] = [
        ("out", Annotated[Path, arg(help="Folder for the results, new or empty.")]),
        ("config", Annotated[Path | None, arg(help=CONFIG_HELP[command])], None),
    ]
    if command == "compare":
        where.append(("against", Annotated[str | None, arg(help=AGAINST)], None))
        about = "Add references that cost as much as the others do, by more replay."
        where.append(("equal_cost", Annotated[bool, arg(help=about)], False))
        where.append(("tune", Annotated[int | None, arg(help=TUNE)], None))
        where.append(("over", Annotated[str | None, arg(help=OVER, metavar="NAME=VALUES")], None))
        where.append(("tune_for", Annotated[str | None, arg(help=TUNE_FOR, metavar="ARM")], None))
    where.append(("trust", Annotated[bool, arg(help=TRUST)], False))
    request_type = dataclasses.make_dataclass(
        "Request",
        where
        + [
            (
                name,
                Annotated[type(value), arg(name="" if name in (*sections, *SECTIONS) else name)],
                field(default=value),
            )
            for name, value in (sections | members).items()
        ],
    )
    if help.asked_for(tokens):
        own = help.options_of(dataclasses.make_dataclass("Own", where))
        show_help(command, own, base, help.ALL in tokens)
        raise SystemExit(0)
    parsed: Any = read(request_type, tokens, f"droptop {command}", ABOUT[command])
    values = {name: getattr(parsed, name) for name in sections}
    config = Config(**values, members=settings_of({name: getattr(parsed, name) for name in members}))
    return config, parsed


def show_help(command: Command, own: Sequence[help.Option], base: Config, everything: bool) -> None:
    """Print the options of a command, by section, with the defaults of a configuration.

    Args:
        command: The command.
        own: Options that are no part of a configuration, the folder for results first.
        base: The configuration that the names on the command line stand for.
        everything: Show every option, and what the streams are, not only what most people need.
    """
    shown = SHORT | (NEEDED_BY_A_VIT if isinstance(base.net, ViTConfig) else set())
    usual = {name: getattr(RunOptions, name) for name in ("data", "method", "debias", "device")}
    streams = [name for name in known_names() if everything or not name.endswith(":VARIANT")]
    names = {"data": streams, "method": [*METHODS], "debias": [*MEMBERS, *RECIPES]}

    def options(part: Any, prefix: str = "") -> list[help.Option]:
        return chosen(help.options_of(type(part), part, prefix))

    def chosen(found: list[help.Option]) -> list[help.Option]:
        return [
            option._replace(about=f"{option.about} Names: {', '.join(names[option.path])}.")
            if option.path in names
            else option
            for option in found
            if everything or option.path in shown
        ]

    sections = {
        "run": chosen([own[0], *help.options_of(RunOptions, dataclasses.replace(base.options, **usual)), *own[1:]]),
        "stream": options(base.stream, "stream."),
        "net": options(base.net, "net."),
        "learner": options(base.learner, "learner."),
        "debiasing": [option for name, part in vars(base.members).items() for option in options(part, f"{name}.")],
    }
    if everything:
        sections["streams"] = [help.Option(name, name, f"{about}.") for name, about in known_names().items()]
    below = (
        f"Options and defaults of --data {base.options.data} --method {base.options.method} --debias "
        f"{base.options.debias} --device {base.options.device}; name others beside them."
    )
    below += "" if everything else f" For all, type {help.ALL}."
    help.show(f"droptop {command}", ABOUT[command], sections, below)
