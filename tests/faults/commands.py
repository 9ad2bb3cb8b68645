"""The real command in a process of its own, forked from one that has loaded torch, so that hundreds are bearable.

Its workers are forked too, and so have the faults of the process that starts them.
"""

import math
import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

PRELOADED = [
    "droptop.cli.main",
    "droptop.cli.run",
    "droptop.cli.sweep",
    "droptop.training.seed_run",
    "matplotlib.figure",
]
LIMIT = 180.0  # seconds, after which a command counts as one that never ends

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(PRELOADED)


class Done(NamedTuple):
    """Hold what became of a command."""

    code: int  # -9 where it was killed
    out: str
    err: str


def nothing() -> None:
    """Prepare nothing."""


class Running:
    """A command that is at work; `prepare` is called in its process before."""

    def __init__(self, said: Path, *args: str | Path, prepare: Callable[..., Any] = nothing, given: Any = ()) -> None:
        said.mkdir(parents=True, exist_ok=True)
        self.said = said
        self.process = context.Process(target=work, args=(said, [*map(str, args)], prepare, given))
        self.process.start()

    def wait(self) -> Done:
        """Wait for its end."""
        self.process.join(LIMIT)
        if self.process.exitcode is None:
            self.process.kill()
            raise AssertionError(f"never ended: {(self.said / 'out').read_text()} {(self.said / 'err').read_text()}")
        return Done(self.process.exitcode, (self.said / "out").read_text(), (self.said / "err").read_text())


def run(said: Path, *args: str | Path, prepare: Callable[..., Any] = nothing, given: Any = ()) -> Done:
    """Run a command to its end; what it says goes through files in the folder `said`."""
    return Running(said, *args, prepare=prepare, given=given).wait()


def work(said: Path, args: list[str], prepare: Callable[..., Any], given: Any) -> None:
    """Be the command."""
    os.setsid()  # a group of its own, to be killed as one
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(said / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.environ |= {"COLUMNS": "140", "OMP_NUM_THREADS": "1", "DROPTOP_CACHE": str(said.parent / "cache")}
    os.environ |= {"GIT_DIR": os.devnull, "DROPTOP_TRUSTED": str(said.parent / "trusted.json")}
    from droptop.cli import main
    from droptop.training import seed_checkpoints, worker_pool

    seed_checkpoints.MAX_COST = math.inf  # so that it is options alone that say when a checkpoint is due
    worker_pool.get_context = lambda method: multiprocessing.get_context("fork")  # type: ignore[attr-defined]
    prepare(*given)
    sys.exit(main(args))
