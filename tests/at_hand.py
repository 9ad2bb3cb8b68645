"""Workers that start at once: forked from a process that has loaded torch, where the commands start each afresh.

They get what a fresh process gets, by the same pipe, and nothing of the test: no patch, no module, no open file. What
they are spared is to load torch, over a second each. That the commands' own workers start is seen wherever a test runs
the real command.
"""

import os
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any

LOADED = ["droptop.training.workers", "droptop.bench.costs", "droptop.methods", "droptop.streams"]


class Worker(ForkServerProcess):
    """A process that has the environment of the moment it is started, as one that is started afresh."""

    def start(self) -> None:
        self.environment = dict(os.environ)
        super().start()

    def run(self) -> None:
        os.environ.clear()
        os.environ.update(self.environment)
        super().run()


class Context(ForkServerContext):
    """What `multiprocessing.get_context` returns, with workers at hand."""

    Process = Worker  # type: ignore[assignment]


def context(method: str) -> Any:
    """Stand in for `get_context`, which is asked for processes that are started afresh."""
    assert method == "spawn"
    found = Context()
    found.set_forkserver_preload(LOADED)
    return found
