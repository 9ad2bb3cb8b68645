"""Milliseconds a step: every method, with and without debiasing, by every engine, with several seeds in flight; where a
step's time goes; and a plain loop of the usual kind in the same run.
"""

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import torch

from droptop import nets
from droptop.bench.plain_loop import plain_er
from droptop.learner import Learner
from droptop.methods import find
from droptop.runs.build import build_learner, build_stream
from droptop.runs.config import Config, configure
from droptop.streams import Stream
from droptop.training.device_stream import on_device
from droptop.training.graphs import GraphedSteps, cuda_stream
from droptop.training.stepping import Steps
from droptop.training.workers import prepare
from droptop.types import Position, Source

Engine = Literal["graphs", "eager"]
LAP = 6  # steps between readings, a whole number of periods: the probe comes every few steps
WARM_UP = 2  # laps
CYCLES = 2_000_000_000  # of a GPU in a second, or more


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
        shares = phases(config)  # after the race, which says how long it took to be ready, compiling included
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
        yield {
            "seeds": count,
            "ms": statistics.fmean(laps),
            "ms_error": statistics.stdev(laps) / len(laps) ** 0.5,
            "steps_per_second": 1000 / statistics.fmean(laps),
            "ready_seconds": ready,
            "memory_mib": None if peak is None else round(peak / 2**20),
        }


def lap(flying: "list[Runner]") -> float:
    """Seconds in which every seed takes LAP steps."""
    started = time.perf_counter()
    for runner in flying:
        runner.queue()
    for runner in flying:
        runner.read()
    return time.perf_counter() - started


class Runner:
    """One seed, in the middle of its stream: the memory is full, as it is for most of it."""

    def __init__(self, config: Config, stream: Stream, seed: int, engine: Engine) -> None:
        self.stream_context = cuda_stream(config.options.device)
        with self.stream_context:
            learner = build_learner(config, stream, seed)
            fill(learner, stream.train)
            kind = GraphedSteps if engine == "graphs" else Again
            self.steps: Steps = kind(learner, on_device(stream, learner.device), Position(), LAP)
        self.positions = itertools.cycle(Position(0, batch) for batch in range(stream.steps(0)))

    def queue(self) -> None:
        with self.stream_context:
            for position in itertools.islice(self.positions, LAP):
                self.steps.advance(position)

    def read(self) -> None:
        with self.stream_context:
            self.steps.read()


class Again(Steps):
    """Eager steps over the same batches again and again."""

    def step(self, position: Position) -> None:
        self.learn(self.to_device(self.stream.batch(position)))


def fill(learner: Learner, train: Source) -> None:
    """Gives the memory all it can hold."""
    samples = train[torch.linspace(0, len(train) - 1, learner.memory.capacity).long()]
    for name, rows in learner.arrive(samples.x.to(learner.device), samples.y.to(learner.device)).items():
        learner.memory.rows[name][:-1] = rows
    learner.memory.size.fill_(learner.memory.capacity)
    learner.memory.seen.fill_(len(train))


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
    return {
        "method": "er",
        "debias": "none",
        "engine": "plain loop",
        "seeds": 1,
        "ms": statistics.fmean(laps),
        "ms_error": statistics.stdev(laps) / len(laps) ** 0.5,
        "steps_per_second": 1000 / statistics.fmean(laps),
    }


# -- Where the time of a step goes ------------------------------------------------------------------------------------


def phases(config: Config, steps: int = LAP) -> dict[str, float]:
    """Percent of the device's time spent in each part of a step, the probe's at its period."""
    with cuda_stream(config.options.device):
        stream = build_stream(config, 0)
        learner = build_learner(config, stream, 0)
        fill(learner, stream.train)
        runner = Again(learner, on_device(stream, learner.device), Position(), 2 * steps)
        positions = [Position(0, step % stream.steps(0)) for step in range(steps)]
        for position in positions:
            started = time.perf_counter()
            runner.advance(position)
        watch = Watch(learner, time.perf_counter() - started)
        for position in positions:
            watch.mark()
            runner.advance(position)
            watch.end()
        return watch.shares()


class Watch:
    """Stop watches on a learner's parts: each moment belongs to the innermost part at work. On a GPU every part begins
    after a pause as long as the host takes for a step, so that it is queued before it runs and no gaps are measured
    (but for parts of more than some thousand kernels, which do not fit into the queue)."""

    def __init__(self, learner: Learner, pause: float) -> None:
        self.gpu, self.pause = learner.device.type == "cuda", round(CYCLES * pause)
        self.stack: list[str] = []
        self.marks: list[tuple[str, Any, Any]] = []  # what begins, when what was before it ended, when it began
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
        if learner.debias is not None:
            learner.debias.forward = self.timed(learner.debias.forward, "mask")  # type: ignore[method-assign]
            for model in learner.replicas:
                setattr(model, "trunk", self.attention(model.trunk))  # noqa: B010

    def timed(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            self.enter(part)
            try:
                return function(*args, **options)
            finally:
                self.enter(None)

        return run

    def attention(self, trunk: Callable[..., Any]) -> Callable[..., Any]:
        """The pass for the sake of the mask is a part of its own."""
        timed = self.timed(trunk, "attention")
        return lambda *given: (timed if self.stack[-1:] == ["mask"] else trunk)(*given)

    def now(self) -> Any:
        if not self.gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def mark(self) -> None:
        """One part ends here and another begins, on a GPU after a pause that belongs to neither."""
        ended = self.now()
        if self.gpu:
            torch.cuda._sleep(self.pause)
        self.marks.append((self.stack[-1] if self.stack else "rest", ended, self.now() if self.gpu else ended))

    def enter(self, part: str | None) -> None:
        if part is None:
            self.stack.pop()
        else:
            self.stack.append(part)
        self.mark()

    def end(self) -> None:
        self.mark()
        if self.gpu:
            torch.cuda.synchronize()
        for (part, _, began), (_, ended, _) in itertools.pairwise(self.marks):
            self.spent[part] = self.spent.get(part, 0.0) + (began.elapsed_time(ended) if self.gpu else ended - began)
        self.marks.clear()

    def shares(self) -> dict[str, float]:
        total = sum(self.spent.values())
        return {part: round(100 * spent / total, 1) for part, spent in self.spent.items()}
