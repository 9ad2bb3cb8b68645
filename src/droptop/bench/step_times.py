"""Measure milliseconds per step: every method, with and without debiasing, by every engine, with one seed or several.

Also the share of each part of a step, and the time of a plain loop of the usual kind, on the same machine.
"""

import gc
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from droptop import nets
from droptop.bench.plain_loop import plain_er
from droptop.bench.runner import LAP, Engine, Runner, lap
from droptop.bench.stopwatch import shares_of_a_step
from droptop.methods import find
from droptop.results.statistics import estimate
from droptop.runs.build import build_stream
from droptop.runs.config import Config, configure
from droptop.system.devices import is_cuda
from droptop.training.workers import prepare

WARM_UP = 2  # laps


def measure(
    data: str,
    methods: list[str],
    debias: str,
    seeds: list[int],
    engines: Sequence[Engine],
    steps: int,
    options: dict[str, Any],
    tell: Callable[[dict[str, Any]], None],
) -> None:
    """Hand `tell` a row per method, arm, engine and number of seeds; the shares of a step are added later."""
    prepare(options["device"], deterministic=False, precision=options["precision"])
    for method, arm in itertools.product(methods, ("none", debias)):
        config = configure(data, method, arm, **options_for(options, method, arm))
        rows = []
        for engine in engines:
            for row in race(config, engine, seeds, steps):
                rows.append({"method": method, "debias": arm, "engine": engine, **row})
                tell(rows[-1])
        shares = shares_of_a_step(config)  # after `race`, which times the start of the first seed, compiling included
        for row in rows:
            row["shares"] = shares


def options_for(options: dict[str, Any], method: str, arm: str) -> dict[str, Any]:
    """Return the options that a method and an arm have; a method on a ViT gets random weights unless they are set."""
    on_vit = find(method).net_type is nets.ViTConfig
    unknown = {"width", "stem"} if on_vit else {"weights"}
    if arm == "none":
        unknown |= {"probe"}
    known = {name: value for name, value in options.items() if name not in unknown}
    return {"weights": "random"} | known if on_vit else known


def race(config: Config, engine: Engine, seeds: list[int], steps: int) -> Iterator[dict[str, Any]]:
    """Yield the time of a step per number of seeds at once, in ascending order."""
    on_gpu, runners = is_cuda(config.options.device), list[Runner]()
    gc.collect()
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_reserved() if on_gpu else 0
    started, stream = time.perf_counter(), build_stream(config, 0)
    stream.tests = {}  # nothing is evaluated
    for count in sorted(seeds):
        while len(runners) < count:
            runners.append(Runner(config, stream, len(runners), engine))
            if len(runners) == 1:
                ready = time.perf_counter() - started
        for _ in range(WARM_UP):
            lap(runners)
        laps = [1000 * lap(runners) / LAP / count for _ in range(max(2, steps // LAP))]
        peak = torch.cuda.max_memory_reserved() - before if on_gpu else None
        memory = None if peak is None else round(peak / 2**20)
        yield {"seeds": count, **summed_up(laps), "ready_seconds": ready, "memory_mib": memory}


def baseline(data: str, steps: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return the row of ER by the plain loop."""
    unknown = ("probe", "precision", "compile", "weights")  # the plain loop has none of these
    known = {name: value for name, value in options.items() if name not in unknown}
    plain = PlainRunner(configure(data, "er", "none", **known))
    plain.queue()
    laps = []
    for _ in range(max(2, steps // LAP)):
        started = time.perf_counter()
        plain.queue()
        laps.append(1000 * (time.perf_counter() - started) / LAP)
    return {"method": "er", "debias": "none", "engine": "plain loop", "seeds": 1, **summed_up(laps)}


class PlainRunner:
    """ER by the plain loop, whose memory is full: it takes laps as a `Runner` does, and reads every loss at once."""

    def __init__(self, config: Config) -> None:
        stream, learner = build_stream(config, 0), config.learner
        model = nets.build(config.net, stream.spec.shape[0], len(stream.spec.classes), 0)
        augment, device = learner.augment != "none", config.options.device
        self.loop = plain_er(model, stream, device, learner.lr, learner.memory, learner.memory_batch, augment)
        for _ in itertools.islice(self.loop, -(-learner.memory // stream.config.batch)):  # until its memory is full
            pass

    def queue(self) -> None:
        """Take LAP steps."""
        for _ in itertools.islice(self.loop, LAP):
            pass

    def read(self) -> None:
        """Do nothing: every loss has been read."""


def summed_up(laps: list[float]) -> dict[str, float | None]:
    """Return mean and standard error of laps in milliseconds per step, and steps per second."""
    mean, error, _ = estimate(laps)
    assert mean is not None
    return {"ms": mean, "ms_error": error, "steps_per_second": 1000 / mean}
