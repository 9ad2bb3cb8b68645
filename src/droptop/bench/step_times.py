"""Milliseconds a step: every method, with and without debiasing, by every engine, with several seeds in flight; where a
step's time goes; and a plain loop of the usual kind in the same run.
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
    """Tells a row for every method, arm, engine and number of seeds; the shares of a step come into it later."""
    prepare(options["device"], deterministic=False)
    for method, arm in itertools.product(methods, ("none", debias)):
        config = configure(data, method, arm, **suited(options, method, arm))
        rows = []
        for engine in engines:
            for row in race(config, engine, seeds, steps):
                rows.append({"method": method, "debias": arm, "engine": engine, **row})
                tell(rows[-1])
        shares = shares_of_a_step(config)  # after the race, which says how long it took to be ready, compiling included
        for row in rows:
            row["shares"] = shares


def suited(options: dict[str, Any], method: str, arm: str) -> dict[str, Any]:
    """The options that this method and arm have; a method on a ViT takes random weights unless told."""
    on_vit = find(method).net_type is nets.ViTConfig
    foreign = {"width", "stem"} if on_vit else {"weights"}
    if arm == "none":
        foreign |= {"probe"}
    known = {name: value for name, value in options.items() if name not in foreign}
    return {"weights": "random"} | known if on_vit else known


def race(config: Config, engine: Engine, seeds: list[int], steps: int) -> Iterator[dict[str, Any]]:
    """The time of a step as more and more seeds fly at once."""
    on_gpu, flying = config.options.device == "cuda", list[Runner]()
    gc.collect()
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_reserved() if on_gpu else 0
    started, stream = time.perf_counter(), build_stream(config, 0)
    stream.tests = {}  # nothing is evaluated
    for count in sorted(seeds):
        while len(flying) < count:
            flying.append(Runner(config, stream, len(flying), engine))
            if len(flying) == 1:
                ready = time.perf_counter() - started
        for _ in range(WARM_UP):
            lap(flying)
        laps = [1000 * lap(flying) / LAP / count for _ in range(max(2, steps // LAP))]
        peak = torch.cuda.max_memory_reserved() - before if on_gpu else None
        memory = None if peak is None else round(peak / 2**20)
        yield {"seeds": count, **summed_up(laps), "ready_seconds": ready, "memory_mib": memory}


def baseline(data: str, steps: int, options: dict[str, Any]) -> dict[str, Any]:
    """ER by the plain loop."""
    known = {name: value for name, value in options.items() if name not in ("probe", "precision", "compile", "weights")}
    config = configure(data, "er", "none", **known)
    stream, learner = build_stream(config, 0), config.learner
    model = nets.build(config.net, stream.spec.shape[0], len(stream.spec.classes), 0)
    loop = plain_er(
        model,
        stream,
        config.options.device,
        learner.lr,
        learner.memory,
        learner.memory_batch,
        learner.augment != "none",
    )
    for _ in itertools.islice(loop, -(-learner.memory // stream.config.batch) + WARM_UP):  # until its memory is full
        pass
    laps = []
    for _ in range(max(2, steps // LAP)):
        started = time.perf_counter()
        for _ in itertools.islice(loop, LAP):
            pass
        laps.append(1000 * (time.perf_counter() - started) / LAP)
    return {"method": "er", "debias": "none", "engine": "plain loop", "seeds": 1, **summed_up(laps)}


def summed_up(laps: list[float]) -> dict[str, float | None]:
    """Return mean and standard error of laps in milliseconds per step, and steps per second."""
    mean, error, _ = estimate(laps)
    assert mean is not None
    return {"ms": mean, "ms_error": error, "steps_per_second": 1000 / mean}
