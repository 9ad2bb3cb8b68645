"""Milliseconds a step, for every method with and without debiasing, in one run on one machine."""

import statistics
import time
from itertools import cycle, islice
from typing import Any

import torch

from droptop.config import configure
from droptop.engine.build import build_learner, build_stream
from droptop.learner import Learner
from droptop.streams import Batch, Source

WARM_UP = 3  # steps, a whole period


def measure(data: str, methods: list[str], debias: str, steps: int, options: dict[str, Any]) -> list[dict[str, Any]]:
    """A row a method: mean step of both arms, what debiasing adds, and the ratio to plain ER.

    Learners take turns step by step, so that whatever else the machine does falls on all of them alike; the memory is
    full from the start, as it is for most of a stream.
    """
    names = [(method, arm) for method in dict.fromkeys(["er", *methods]) for arm in ("none", debias)]
    config = {name: configure(data, *name, **{k: v for k, v in options.items() if v is not None}) for name in names}
    learners, batches = {}, {}
    for name in names:
        stream = build_stream(config[name], 0)
        learners[name] = build_learner(config[name], stream, 0)
        fill(learners[name], stream.train)
        batches[name] = list(islice(cycle(stream), WARM_UP + steps))
        for batch in batches[name][:WARM_UP]:
            learners[name].observe(batch.x, batch.y)
    times: dict[tuple[str, str], list[float]] = {name: [] for name in names}
    for step in range(WARM_UP, WARM_UP + steps):
        for name in names:
            times[name].append(timed(learners[name], batches[name][step]))
    # The probe comes every few steps: a mean over whole periods shows its cost, a median would hide it.
    mean = {name: 1000 * statistics.fmean(values) for name, values in times.items()}
    error = {name: 1000 * statistics.stdev(values) / len(values) ** 0.5 for name, values in times.items()}
    return [{"method": method, "ms": mean[method, "none"], "ms_error": error[method, "none"],
             f"ms_{debias}": mean[method, debias], f"ms_{debias}_error": error[method, debias],
             "debias_ratio": mean[method, debias] / mean[method, "none"],
             "er_ratio": mean[method, "none"] / mean["er", "none"]} for method in methods]


def fill(learner: Learner, train: Source) -> None:
    """Gives the memory all it can hold."""
    samples = train[torch.linspace(0, len(train) - 1, learner.memory.capacity).long()]
    held = learner.memory.rows
    held["x"][:-1], held["y"][:-1] = samples.x.to(learner.device), samples.y.to(learner.device)
    learner.memory.size.fill_(learner.memory.capacity)
    learner.memory.seen.fill_(len(train))


def timed(learner: Learner, batch: Batch) -> float:
    wait(learner)
    started = time.perf_counter()
    learner.observe(batch.x, batch.y)
    wait(learner)
    return time.perf_counter() - started


def wait(learner: Learner) -> None:
    if learner.device.type == "cuda":
        torch.cuda.synchronize()
