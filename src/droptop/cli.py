"""The command line: `droptop run | compare | resume`.

Exit codes: 0 done, 1 something failed while running, 2 the request cannot be met, 130 interrupted.
"""

import contextlib
import dataclasses
import io
import re
import sys
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import tyro
from rich.console import Console
from tyro.conf import arg

from droptop import api
from droptop.config import SECTIONS, Config, defaults, read_toml, resolve
from droptop.debias import DEBIAS
from droptop.engine.run import Command, finished, load
from droptop.errors import BadRequest, DroptopError
from droptop.methods import METHODS
from droptop.report import progress, tables
from droptop.streams import STREAMS

USAGE = """\
usage: droptop COMMAND ...

  run      trains one method on one stream
             droptop run --data fashion-sticker --method er --debias droptop --seeds 5 --out runs/er
  compare  trains it with and without debiasing on the same seeds, and says whether that helped
             droptop compare --data fashion-sticker --method er --debias droptop --seeds 5 --out runs/first
  resume   continues either from where it stopped
             droptop resume runs/first

`droptop run --help` and `droptop compare --help` list every option of the stream, method and debiasing named beside it.
"""


def main(argv: Sequence[str] | None = None) -> int:
    args = list(sys.argv[1:] if argv is None else argv)
    console = Console()
    if not console.is_terminal:
        console = Console(width=140)  # a log has no edge to wrap at
    warnings.showwarning = lambda message, *_, **__: print(f"note: {message}", file=sys.stderr)
    out: Path | None = None
    try:
        command, config, out, fresh = request(args)
        return serve(command, config, out, fresh, console)
    except BadRequest as error:
        return complain(str(error), 2)
    except KeyboardInterrupt:
        return complain(f"interrupted{_how_to_go_on(out)}", 130)
    except DroptopError as error:
        return complain(f"{error}{_how_to_go_on(out)}", 1)
    except OSError as error:
        return complain(f"{error.filename or ''}: {error.strerror or error}{_how_to_go_on(out)}", 1)


def complain(text: str, code: int) -> int:
    print(f"droptop: {text}", file=sys.stderr)
    return code


def _how_to_go_on(out: Path | None) -> str:
    return f"; `droptop resume {out}` continues" if out is not None and (out / "config.toml").exists() else ""


def serve(command: Command, config: Config, out: Path, fresh: bool, console: Console) -> int:
    """Runs what was asked for and prints the answer."""
    if not fresh and finished(command, config, out):
        console.print(f"{out} is finished: nothing to resume", highlight=False)
    with progress.listener(console) as listener:
        result = (api.start if fresh else api.carry_on)(command, config, out, listener)
    console.print()
    if command == "compare":
        console.print(tables.compare_table(result))
        console.print("\n".join(tables.answer(result)), highlight=False)
    else:
        console.print(tables.run_table(result))
    console.print(f"results in {out}, pictures in {out / 'figures'}", highlight=False, soft_wrap=True)
    return 0


# -- What is asked for ------------------------------------------------------------------------------------------------


def request(args: list[str]) -> tuple[Command, Config, Path, bool]:
    """Command, configuration, folder, and whether that folder is a new one."""
    if not args or args[0] in ("-h", "--help"):
        print(USAGE, end="")
        raise SystemExit(0 if args else 2)
    if args[0] == "--version":
        from droptop import __version__

        print(f"droptop {__version__}")
        raise SystemExit(0)
    name, *rest = args
    if name == "resume":
        if rest and rest[0] in ("-h", "--help"):
            print("usage: droptop resume FOLDER\n\ncontinues a run or comparison from where it stopped")
            raise SystemExit(0)
        if len(rest) != 1 or rest[0].startswith("-"):
            raise BadRequest("resume takes one folder: droptop resume runs/first")
        out = Path(rest[0])
        return *load(out), out, False
    if name not in get_args(Command):
        raise BadRequest(f"unknown command {name}: there are run, compare and resume")
    command: Command = "run" if name == "run" else "compare"
    return command, *parse(command, rest), True


def parse(command: Command, args: list[str]) -> tuple[Config, Path]:
    """Two passes: the names of data, method and debias say which options there are; then the options are read."""
    file = _last(args, "--config")
    written = {} if file is None else read_toml(Path(file))
    written.pop("command", None)
    chosen = {name: _last(args, f"--{name}") or str(written.get(name, default))
              for name, default in (("data", "fashion-sticker"), ("method", "er"), ("debias", "droptop"))}
    base = defaults(**chosen)
    tokens = [token for path, value in written.items() for token in _tokens(path, value, base, f"{file}: ")]
    hints = _flags(base)
    position = 0
    while position < len(args):
        token = args[position]
        position += 1
        if not token.startswith("--") or token in ("--help", "--config", "--out"):
            tokens.append(token)
            continue
        name, equals, value = token.removeprefix("--").partition("=")
        negated = name.startswith("no-") and not any(flag.endswith(name.replace("-", "_")) for flag in hints)
        path = resolve(name.removeprefix("no-") if negated else name, base)
        if hints[path] is bool:
            if not equals and position < len(args) and args[position].lower() in ("true", "false"):
                value = args[position]
                position += 1
            tokens += _tokens(path, negated != (value.lower() != "false"), base)
        else:
            tokens += [_flag(path), *([value] if equals else [])]
    return _second_pass(command, base, tokens)


def _last(args: list[str], flag: str) -> str | None:
    """The last value given for a flag, as `--flag value` or `--flag=value`."""
    values = [after for token, after in pairwise(args) if token == flag]
    values += [token.partition("=")[2] for token in args if token.startswith(flag + "=")]
    if args and args[-1] == flag:
        raise BadRequest(f"{flag} takes a value")
    return values[-1] if values else None


def _flag(path: str) -> str:
    """An option's flag: its path without the section."""
    head, _, rest = path.partition(".")
    return "--" + (rest if head in SECTIONS else path).replace("_", "-")


def _tokens(name: str, value: Any, config: Config, where: str = "") -> list[str]:
    """An option as command-line tokens."""
    flag = _flag(resolve(name, config, where))
    if isinstance(value, bool):
        prefix, dot, last = flag.removeprefix("--").rpartition(".")
        return [f"--{prefix}{dot}{'' if value else 'no-'}{last}"]
    return [flag, str(value)]


def _flags(config: Config) -> dict[str, Any]:
    """The type of every option, by path."""
    def hints(value: Any, prefix: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, hint in get_type_hints(type(value)).items():
            inner = getattr(value, name)
            path = prefix + ("" if name == "options" else name)
            if dataclasses.is_dataclass(inner):
                found |= hints(inner, path and path + ".")
            else:
                found[path] = hint
        return found

    return hints(config, "")


def _second_pass(command: Command, base: Config, tokens: list[str]) -> tuple[Config, Path]:
    """Reads every option with tyro, which also writes the help."""
    sections = [(field.name, value) for field in dataclasses.fields(base)
                if (value := getattr(base, field.name)) is not None]
    where = [("out", Annotated[Path, arg(help="Folder for the results, new or empty.")]),
             ("config", Annotated[Path | None, arg(help="TOML file of options; the command line wins over it.")], None)]
    request_type = dataclasses.make_dataclass("Request", where + [
        (name, Annotated[type(value), arg(name="")], dataclasses.field(default=value)) for name, value in sections])
    known = f"streams: {', '.join(STREAMS)}\nmethods: {', '.join(METHODS)}\ndebias: none, {', '.join(DEBIAS)}"
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            parsed: Any = tyro.cli(request_type, args=tokens, prog=f"droptop {command}", description=known)
    except SystemExit as end:
        if end.code in (0, None):
            raise
        raise BadRequest(one_line(errors.getvalue())) from None
    values = {name: getattr(parsed, name) for name, _ in sections}
    return Config(**{"droptop": None} | values), parsed.out


def one_line(box: str) -> str:
    """The message of tyro's error box."""
    lines = [line.strip("│ ") for line in box.splitlines() if line.startswith("│")]
    rule = next((n for n, line in enumerate(lines) if line.startswith("─")), len(lines))
    message = " ".join(lines[:rule])
    if found := re.match(r"Error parsing (--\S+): .*?('[^']*'|\S+)$", message):
        metavar = next((line.split()[-1] for line in lines[rule:] if line.startswith(found[1] + " ")), "another value")
        kinds = {"INT": "an integer", "FLOAT": "a number", "{None}|INT": "an integer"}
        return f"{found[1]} takes {kinds.get(metavar, metavar)}, not {found[2]}"
    if found := re.match(r"Missing from droptop \w+: (--\S+)", message):
        return f"{found[1]} is missing"
    if found := re.match(r"Missing value for argument '(--\S+)'", message):
        return f"{found[1]} takes a value"
    if found := re.match(r"invalid choice (\S+) for argument '(--\S+)'. Expected one of \((.*)\)", message):
        return f"{found[2]} takes one of {found[3]}, not {found[1]}"
    return message.rstrip(".")
