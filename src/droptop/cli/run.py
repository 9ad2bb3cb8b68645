"""`droptop run | compare | resume`: trains one arm, or several on the same seeds, or continues either."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from droptop import api
from droptop.cli import arguments, run_flags
from droptop.cli.outcome import print_outcome
from droptop.errors import require, typed
from droptop.report import file_progress as bars
from droptop.report import seed_progress as progress
from droptop.runs.folder import Command
from droptop.runs.moved import saying_where, with_data
from droptop.runs.requests import finished, load, with_device, with_seeds
from droptop.runs.trust import named, trusted
from droptop.sweeps.tuning.arms import awaits_tuning
from droptop.system.terminal import Console


@dataclass(frozen=True, kw_only=True)
class ResumeOptions:
    """Hold the options of `droptop resume`."""

    folder: Annotated[Positional[Path], arg(metavar="FOLDER", help="A run or comparison, finished or not.")]
    seeds: int | None = None
    """Number of seeds in all, at least as many as were begun; by default as many as config.toml says."""
    device: str | None = None
    """Device to go on with, of the kind that it began on, such as cuda:1 or cuda:all where that was cuda; by default
    the one that config.toml says."""
    data: str | None = None
    """Where the images are now, such as folder:PATH, if they have moved; by default where config.toml says."""
    trust: bool = False
    """Execute Python files that only the folder names, and its copies of those that are gone or have changed. Read them
    first."""


def run(args: list[str], console: Console) -> int:
    """Train one arm, and print its results; return the exit code."""
    return begin("run", args, console)


def compare(args: list[str], console: Console) -> int:
    """Train several arms on the same seeds, and print the comparison; return the exit code."""
    return begin("compare", args, console)


def resume(args: list[str], console: Console) -> int:
    """Continue a run or comparison, and print its results; return the exit code."""
    about = "continues a run or comparison from where it stopped, or with more seeds"
    options = arguments.read(ResumeOptions, args, "droptop resume", about)
    out = options.folder
    if awaits_tuning(out):
        require(options.seeds is None and options.data is None, "seeds", "a comparison whose arms are all tuned", out)
        require(options.device is None, "device", "a comparison whose arms are all tuned", out)
        return execute(partial(api.go_on_tuning, out, options.trust), out, console)
    named({"data": options.data})
    with saying_where(out, options.data), trusted(out, options.trust, typed("resume", *args, "--trust")):
        plan = with_device(with_data(load(out), out, options.data), out, options.device)
        plan = with_seeds(plan, out, options.seeds)
        done = finished(plan, out)
        heading = f"{out} is finished: nothing to resume" if done else ""
        return execute(partial(api.carry_on, plan, out), out, console, heading)


def begin(command: Command, args: list[str], console: Console) -> int:
    """Begin what a command line asks for; return the exit code."""
    asked = run_flags.parse(command, args)
    return execute(partial(api.start, *asked), asked.out, console)


def execute(train: Callable[..., dict[str, Any]], out: Path, console: Console, heading: str = "") -> int:
    """Train what is missing in a folder; print the heading and the results; return the exit code."""
    with bars.decoding(), progress.listener(console) as listener:
        result = train(observer=listener)
    console.print(heading, soft_wrap=True)
    print_outcome(result, out, console)
    return 0
