"""Measure what a training step of each arm costs: passes through the net, counted, and milliseconds on this machine.

A pass is one image forward and backward. Forward alone, as in an attention pass or a probe, counts a third: backward
takes about twice the operations of forward. All of it runs in a process of its own, so that torch's switches and its
memory are as before.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, TypedDict, TypeVar

import torch
from torch import Tensor

from droptop.bench.runner import LAP, Engine, RepeatedSteps, fill
from droptop.bench.step_times import race
from droptop.errors import BadRequest
from droptop.learner import Learner
from droptop.nets import Adapted
from droptop.options import name_of
from droptop.results.statistics import EQUAL
from droptop.runs.build import build_learner, build_stream
from droptop.runs.config import Config, has, override
from droptop.runs.plan import Plan
from droptop.sweeps.tuning.space import Space
from droptop.system.devices import first_of, is_cuda
from droptop.system.processes import without_main
from droptop.training.device_stream import on_device
from droptop.training.graphs import cuda_stream
from droptop.training.workers import computing_on, prepare
from droptop.types import Position

FORWARD_ALONE = 1 / 3
MORE_REPLAY = ("memory_batch", "candidates")  # the options that grow together where more is replayed
FREE = ("learner.lr", "learner.momentum")  # options that are tuned as a rule, and cost nothing
WORTH_AN_ARM = 1.05  # times the plain arm's passes, from which an arm is compared at equal cost
T = TypeVar("T")


class Cost(TypedDict):
    """Hold what a training step costs."""

    passes: float  # images forward and backward per image of the stream
    ms: float  # per step of one seed alone


def costs_of(plan: Plan) -> dict[str, Cost]:
    """Return what a step of every arm costs, by the arm's name."""
    return alone(measure, plan)


def with_equal_cost(plan: Plan) -> Plan:
    """Return a comparison with one more plain arm per arm that costs more: `equal-NAME` takes the passes of NAME."""
    return plan.with_arms(alone(equal_arms, plan))


def refuse_changing_costs(plan: Plan, space: Space) -> None:
    """Raise BadRequest if tuning could change what a step costs, for which arms of equal cost are made before it."""
    asked = {path: values.edges for path, values in space.items() if path not in FREE}
    if asked and (costly := alone(partial(options_that_cost, values=asked), plan)):
        raise BadRequest(
            "--equal-cost makes arms before --tune does: --over takes options that leave costs as they are, not "
            f"{name_of(costly[0])}"
        )


def options_that_cost(plan: Plan, values: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return those of some options, by path, that change what a step of an arm costs within the values given."""
    torch.set_num_threads(plan.options.threads)

    def costs(arm: Config, path: str) -> bool:
        usual = passes_of(arm)
        return any(passes_of(override(arm, {path: value})) != usual for value in values[path])

    return [path for path in values if path.startswith("net.") or any(costs(arm, path) for arm in plan.arms.values())]


def alone(function: Callable[[Plan], T], plan: Plan) -> T:
    """Return what a function gives of a plan in a process of its own, or here where no other has what it needs."""
    if any(arm.options.has_objects for arm in plan.arms.values()):
        with computing_on(plan.options.threads):
            return function(plan)
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        with without_main():
            started = processes.submit(function, plan)
        return started.result()


def measure(plan: Plan) -> dict[str, Cost]:
    """Count passes and take the time of every arm, in the middle of a stream, with the memory full."""
    options, costs = plan.options, dict[str, Cost]()
    torch.set_num_threads(options.threads)
    device = first_of(options.device)
    for name, arm in plan.arms.items():
        prepare(device, deterministic=False, precision=arm.options.precision)
        engine: Engine = "graphs" if is_cuda(device) and arm.options.graphs else "eager"
        (row,) = race(arm.on(device), engine, [1], 2 * LAP)
        costs[name] = {"passes": passes_of(arm), "ms": row["ms"]}
    return costs


def equal_arms(plan: Plan) -> dict[str, Config]:
    """Return a plain arm per arm of a comparison that costs more than its plain one."""
    torch.set_num_threads(plan.options.threads)
    (_, plain), *others = plan.arms.items()
    least = passes_of(plain)
    passes = {name: (arm, passes_of(arm)) for name, arm in others}
    return {
        EQUAL + name: at_passes(plain, arm, count)
        for name, (arm, count) in passes.items()
        if count >= WORTH_AN_ARM * least
    }


def at_passes(plain: Config, arm: Config, passes: float) -> Config:
    """Return a plain arm with the passes of another one: with its iterations, then by more replay.

    Where nothing is replayed, iterations alone make up the passes. Passes grow evenly with the memory batch, and two
    counts say how fast.
    """
    plain = override(plain, {"learner.iterations": arm.noted()["learner.iterations"]})
    least = passes_of(plain)
    if passes < WORTH_AN_ARM * least:
        return plain
    double = passes_of(with_replay(plain, 2)) - least
    if double > 0:
        return with_replay(plain, 1 + (passes - least) / double)
    return override(plain, {"learner.iterations": max(1, round(plain.noted()["learner.iterations"] * passes / least))})


def with_replay(plain: Config, factor: float) -> Config:
    """Return an arm with so many times the memory batch, and the candidates for it."""
    names = [f"learner.{name}" for name in MORE_REPLAY if has(plain, f"learner.{name}")]
    values = plain.noted()
    return override(plain, {name: max(1, round(factor * values[name])) for name in names})


def passes_of(config: Config) -> float:
    """Return how many passes a step takes per image of the stream, probes included: counted in real steps."""
    period = config.droptop.intensity.period if config.droptop is not None else 1
    config = config.on(first_of(config.options.device))
    with cuda_stream(config.options.device):
        stream = build_stream(config, config.options.first_seed)
        learner = build_learner(config, stream, config.options.first_seed)
        fill(learner, stream.train)
        counter = PassCounter(learner)
        runner = RepeatedSteps(learner, on_device(stream, learner.device), Position(), period)
        for step in range(period):
            runner.advance(Position(0, step % stream.steps(0)))
    return counter.passes / (period * stream.config.batch)


class PassCounter:
    """Count the images that go through the trunks of a learner from now on."""

    def __init__(self, learner: Learner) -> None:
        self.passes = 0.0
        for model in learner.every_model:
            hooked = next((part for part in model.modules() if isinstance(part, Adapted)), None)
            if hooked is not None:  # every pass runs through its last map, attention passes too
                hooked.map_hooks().last.register_forward_hook(self.count)
                continue
            setattr(model, "trunk", self.counted(model.trunk))  # noqa: B010

    def counted(self, trunk: Callable[..., Any]) -> Callable[..., Any]:
        """Return a trunk that counts its images."""

        def run(first: Tensor, *given: Any) -> Any:
            self.count(None, (first,))
            return trunk(first, *given)

        return run

    def count(self, _: Any, given: tuple[Any, ...], output: Any = None) -> None:
        """Count the images of one pass, by what goes in."""
        self.passes += len(given[0]) * (1 if torch.is_grad_enabled() else FORWARD_ALONE)
