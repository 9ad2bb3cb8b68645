"""Measure which part of a step takes how much of its time."""

import itertools
import time
from collections.abc import Callable
from typing import Any

import torch

from droptop.bench.runner import LAP, RepeatedSteps, fill
from droptop.learner import Learner
from droptop.runs.build import build_learner, build_stream
from droptop.runs.config import Config
from droptop.training.device_stream import on_device
from droptop.training.graphs import cuda_stream
from droptop.types import Position

CYCLES = 2_000_000_000  # a GPU's clock cycles per second, at least


def shares_of_a_step(config: Config, steps: int = LAP) -> dict[str, float]:
    """Return the percent of a step's time on the device per part; the probe counts as often as it is due."""
    with cuda_stream(config.options.device):
        stream = build_stream(config, 0)
        learner = build_learner(config, stream, 0)
        fill(learner, stream.train)
        runner = RepeatedSteps(learner, on_device(stream, learner.device), Position(), 2 * steps)
        positions = [Position(0, step % stream.steps(0)) for step in range(steps)]
        for position in positions:
            started = time.perf_counter()
            runner.advance(position)
        watch = StopWatch(learner, time.perf_counter() - started)
        for position in positions:
            watch.mark()
            runner.advance(position)
            watch.end()
        return watch.shares()


class StopWatch:
    """Time the parts of a learner's steps: each moment belongs to the innermost part at work.

    On a GPU every part begins after a pause as long as the host takes for a step, so that all of the part is queued
    before it runs and no gaps are measured. Parts of more than some thousand kernels do not fit into the queue.
    """

    def __init__(self, learner: Learner, pause: float) -> None:
        self.gpu, self.pause = learner.device.type == "cuda", round(CYCLES * pause)
        self.stack: list[str] = []
        self.marks: list[
            tuple[str, Any, Any]
        ] = []  # the part that begins, when the one before ended, when this one began
        self.spent: dict[str, float] = {}
        for name, part in (
            ("retrieve", "memory"),
            ("remember", "memory"),
            ("prepare", "images"),
            ("query", "query"),
            ("forward", "forward"),
            ("update", "backward"),
            ("probe", "probe"),
        ):
            if hasattr(learner, name):  # only some have queries
                setattr(learner, name, self.timed(getattr(learner, name), part))
        if learner.debias.act_on("first_map"):
            learner.debias.first_map = self.timed(learner.debias.first_map, "mask")  # type: ignore[method-assign]
            for model in learner.replicas:
                setattr(model, "trunk", self.attention(model.trunk))  # noqa: B010

    def timed(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        """Return a function whose time counts for a part."""

        def run(*args: Any, **options: Any) -> Any:
            self.enter(part)
            try:
                return function(*args, **options)
            finally:
                self.enter(None)

        return run

    def attention(self, trunk: Callable[..., Any]) -> Callable[..., Any]:
        """Return a trunk whose attention pass, which only the mask needs, is a part of its own."""
        timed = self.timed(trunk, "attention")
        return lambda *args: (timed if self.stack[-1:] == ["mask"] else trunk)(*args)

    def now(self) -> Any:
        """Return the time: seconds or, on a GPU, an event in its queue."""
        if not self.gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def mark(self) -> None:
        """End the part before and begin the next, on a GPU after a pause that belongs to neither."""
        ended = self.now()
        if self.gpu:
            torch.cuda._sleep(self.pause)
        self.marks.append((self.stack[-1] if self.stack else "rest", ended, self.now() if self.gpu else ended))

    def enter(self, part: str | None) -> None:
        """Begin a part within the one at work; None ends it."""
        if part is None:
            self.stack.pop()
        else:
            self.stack.append(part)
        self.mark()

    def end(self) -> None:
        """End the step, and add up the times of its parts."""
        self.mark()
        if self.gpu:
            torch.cuda.synchronize()
        for (part, _, began), (_, ended, _) in itertools.pairwise(self.marks):
            self.spent[part] = self.spent.get(part, 0.0) + (began.elapsed_time(ended) if self.gpu else ended - began)
        self.marks.clear()

    def shares(self) -> dict[str, float]:
        """Return the percent of the time spent in each part."""
        total = sum(self.spent.values())
        return {part: round(100 * spent / total, 1) for part, spent in self.spent.items()}
