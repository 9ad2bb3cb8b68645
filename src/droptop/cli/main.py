"""The command line: a file a command, found by its first word.

Exit codes: 0 done, 1 something failed while running, 2 the request cannot be met, 130 interrupted.
"""

import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from rich.console import Console

from droptop import api
from droptop.cli import flags
from droptop.cli.bench import bench
from droptop.cli.data import data
from droptop.cli.export import export
from droptop.cli.paper import paper
from droptop.cli.predict import predict
from droptop.cli.report import report
from droptop.cli.study import results, status, sweep
from droptop.config import Config
from droptop.engine.run import Command, finished, load
from droptop.errors import BadRequest, DroptopError
from droptop.report import bars, progress, tables

USAGE = """\
usage: droptop COMMAND ...

  run      trains one method on one stream
             droptop run --data fashion-sticker --method er --debias droptop --seeds 5 --out runs/er
  compare  trains it with and without debiasing on the same seeds, and says whether that helped
             droptop compare --data fashion-sticker --method er --debias droptop --seeds 5 --out runs/first
  resume   continues either from where it stopped
             droptop resume runs/first
  predict  class and confidence of images, by what a run has learned
             droptop predict runs/first photo.jpg more/photos --maps looks
  export   a run's trained net as one file: onnx, pt2 or safetensors
             droptop export runs/first --format onnx
  bench    milliseconds a step of every method, with and without debiasing, on this machine
             droptop bench --methods er,mir --steps 30
  sweep    runs a grid of methods, data, options and seeds; again, and it runs what is missing
             droptop sweep examples/study.toml --out studies/first
  status   how far a study or a run is
             droptop status studies/first
  results  what a study found, by any of its options
             droptop results studies/first --by data,method,debias
  report   a run, a comparison or a study as one HTML page; --watch keeps it up to date while it goes on
             droptop report runs/first --open
  paper    the paper's tables and figures, run and shown beside what it says
             droptop paper list
  data     which streams there are, and what is on this disk; downloads, checks, contact sheets
             droptop data list

`droptop run --help` and `droptop compare --help` list every option of the stream, method and debiasing named beside it.
"""


COMMANDS = {"predict": predict, "export": export, "sweep": sweep, "status": status, "results": results,
            "report": report, "paper": paper, "data": data, "bench": bench}


def main(argv: Sequence[str] | None = None) -> int:
    args = list(sys.argv[1:] if argv is None else argv)
    console = Console()
    if not console.is_terminal:
        console = Console(width=140)  # a log has no edge to wrap at
    warnings.simplefilter("once")
    warnings.showwarning = lambda message, *_, **__: print(f"note: {message}", file=sys.stderr)
    out: Path | None = None
    try:
        if args and args[0] in COMMANDS:
            return COMMANDS[args[0]](args[1:], console)
        command, config, out, fresh = request(args)
        return serve(command, config, out, fresh, console)
    except BadRequest as error:
        return complain(str(error), 2)
    except KeyboardInterrupt:
        return complain(f"interrupted{_how_to_go_on(out)}", 130)
    except DroptopError as error:
        return complain(f"{error}{_how_to_go_on(out) if error.resumable else ''}", 1)
    except BrokenPipeError:  # `droptop ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return complain(f"{place}{error.strerror or error}{_how_to_go_on(out)}", 1)


def complain(text: str, code: int) -> int:
    print(f"droptop: {text}", file=sys.stderr)
    return code


def _how_to_go_on(out: Path | None) -> str:
    return f"; `droptop resume {out}` continues" if out is not None and (out / "config.toml").exists() else ""


def serve(command: Command, config: Config, out: Path, fresh: bool, console: Console) -> int:
    """Runs what was asked for and prints the answer."""
    if not fresh and finished(command, config, out):
        console.print(f"{out} is finished: nothing to resume", highlight=False, markup=False)
    with bars.decoding(), progress.listener(console) as listener:
        result = (api.start if fresh else api.carry_on)(command, config, out, listener)
    console.print()
    if command == "compare":
        console.print(tables.compare_table(result))
        console.print("\n".join(tables.answer(result)), highlight=False, markup=False)
    else:
        console.print(tables.run_table(result))
    console.print(f"results in {out}, pictures in {out / 'figures'}; `droptop report {out}` makes one page of them",
                  highlight=False, markup=False, soft_wrap=True)
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
        known = ", ".join(["run", "compare", "resume", *COMMANDS])
        raise BadRequest(f"unknown command {name}: there are {known}")
    command: Command = "run" if name == "run" else "compare"
    return command, *flags.parse(command, rest), True
