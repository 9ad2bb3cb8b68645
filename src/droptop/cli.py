"""The command line: `droptop run | compare | resume | bench`.

Exit codes: 0 done, 1 something failed while running, 2 the request cannot be met, 130 interrupted.
"""

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from rich.console import Console

from droptop import api, flags
from droptop.config import Config, configure, named
from droptop.engine.run import Command, finished, load
from droptop.errors import BadRequest, DroptopError, require
from droptop.methods import METHODS
from droptop.nets import Precision
from droptop.nets.resnet import Stem
from droptop.report import progress, tables
from droptop.streams.augment import Augment

USAGE = """\
usage: droptop COMMAND ...

  run      trains one method on one stream
             droptop run --data fashion-sticker --method er --debias droptop --seeds 5 --out runs/er
  compare  trains it with and without debiasing on the same seeds, and says whether that helped
             droptop compare --data fashion-sticker --method er --debias droptop --seeds 5 --out runs/first
  resume   continues either from where it stopped
             droptop resume runs/first
  bench    milliseconds a step of every method, with and without debiasing, on this machine
             droptop bench --methods er,mir --steps 30

`droptop run --help` and `droptop compare --help` list every option of the stream, method and debiasing named beside it.
"""


def main(argv: Sequence[str] | None = None) -> int:
    args = list(sys.argv[1:] if argv is None else argv)
    console = Console()
    if not console.is_terminal:
        console = Console(width=140)  # a log has no edge to wrap at
    warnings.simplefilter("once")
    warnings.showwarning = lambda message, *_, **__: print(f"note: {message}", file=sys.stderr)
    out: Path | None = None
    try:
        if args[:1] == ["bench"]:
            return bench(args[1:], console)
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
        raise BadRequest(f"unknown command {name}: there are run, compare, resume and bench")
    command: Command = "run" if name == "run" else "compare"
    return command, *flags.parse(command, rest), True


# -- How fast it is ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BenchOptions:
    data: str = "fashion-sticker"
    """Stream by name."""
    root: Path | None = None
    """Folder in which data sets lie that are not built in."""
    methods: str = ",".join(METHODS)
    """Methods, separated by commas."""
    debias: str = "droptop"
    """What to debias with."""
    seeds: str = "1"
    """Seeds in flight at once on a GPU, separated by commas."""
    engines: str = ""
    """graphs, eager, or both separated by a comma; all that the device has unless told."""
    steps: int = 30
    """Steps to time."""
    baseline: bool = True
    """Time ER as a plain loop of the usual kind as well."""
    width: int | None = None
    """Channels of the net's first stage; the stream's own unless told."""
    stem: Stem | None = None
    """First layer; the stream's own unless told."""
    weights: str | None = None
    """Weights of the ViT, for methods that take one: a safetensors file or hf:OWNER/NAME; random unless told."""
    memory: int | None = None
    """Samples the replay memory holds; the stream's own unless told."""
    augment: Augment | None = None
    """Augmentation; the stream's own unless told."""
    probe: int | None = None
    """Memory samples of DropTop's probe; the whole memory unless told."""
    device: str = "cpu"
    """cpu or cuda."""
    precision: Precision = "tf32"
    """What the net is computed in."""
    compile: bool = False
    """Compile the net."""
    threads: int = 1
    """Threads of the process."""
    out: Path | None = None
    """JSON file for the figures."""

    def __post_init__(self) -> None:
        require(self.steps >= 2, "steps", "a number of steps from 2", self.steps)
        require(self.threads >= 1, "threads", "a number of threads from 1", self.threads)
        require(self.debias != "none", "debias", "something to compare with none", self.debias)
        require(all(count.strip().isdigit() and int(count) for count in self.seeds.split(",")), "seeds",
                "numbers of seeds such as 1,5,10", self.seeds)
        require(self.device == "cuda" or self.seeds == "1", "seeds", "1 on a CPU", self.seeds)
        known = ("graphs", "eager") if self.device == "cuda" else ("eager",)
        require(all(engine in known for engine in self.engines.split(",") if engine), "engines",
                f"some of {', '.join(known)} on this device", self.engines)


def bench(args: list[str], console: Console) -> int:
    import torch

    from droptop.engine.bench import Engine, baseline, measure
    from droptop.results.folder import environment, write_json

    options = flags.read(BenchOptions, args, "droptop bench", "milliseconds a step, with and without debiasing")
    methods = options.methods.split(",")
    has: Sequence[Engine] = ("graphs", "eager") if options.device == "cuda" else ("eager",)
    engines = [engine for engine in has if engine in (options.engines or ",".join(has)).split(",")]
    for method in methods:
        named("methods", method, METHODS)
    if options.out is not None:
        require(options.out.parent.is_dir(), "out", "a file in an existing folder", options.out)
    torch.set_num_threads(options.threads)
    passed = ("root", "width", "stem", "weights", "memory", "augment", "probe", "device", "precision", "compile",
              "threads")
    chosen = {name: value for name in passed if (value := getattr(options, name)) is not None}
    configure(options.data, "er", options.debias, **chosen)  # refuses what cannot be
    rows = [baseline(options.data, options.steps, chosen)] if options.baseline else []
    rows += measure(options.data, methods, options.debias, [int(count) for count in options.seeds.split(",")],
                    engines, options.steps, chosen,
                    lambda row: print(tables.bench_line(row), file=sys.stderr))
    console.print(tables.bench_table(rows, options.data, options.steps))
    if options.out is not None:
        about = environment(options.device, options.threads)
        asked = {name: str(value) for name, value in vars(options).items() if value is not None and name != "out"}
        write_json(options.out, {"options": asked, "environment": about, "rows": rows})
    return 0
