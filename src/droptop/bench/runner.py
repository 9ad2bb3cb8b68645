"""Run seeds in the middle of their streams, for benchmarks."""

import itertools
import time
from typing import Literal

import torch

from droptop.learner import Learner
from droptop.runs.build import build_learner
from droptop.runs.config import Config
from droptop.streams import Stream
from droptop.training.device_stream import on_device
from droptop.training.graphs import GraphedSteps, cuda_stream
from droptop.training.stepping import Steps
from droptop.types import Position, Source

Engine = Literal["graphs", "eager"]
LAP = 6  # steps per time that is taken; a multiple of the probe's period, so that every lap has as many probes


def lap(runners: "list[Runner]") -> float:
    """Let every seed take LAP steps; return the seconds that took."""
    started = time.perf_counter()
    for runner in runners:
        runner.queue()
    for runner in runners:
        runner.read()
    return time.perf_counter() - started


class Runner:
    """One seed whose memory is full, as it is for most of a stream."""

    def __init__(self, config: Config, stream: Stream, seed: int, engine: Engine) -> None:
        self.stream_context = cuda_stream(config.options.device)
        with self.stream_context:
            learner = build_learner(config, stream, seed)
            fill(learner, stream.train)
            kind = GraphedSteps if engine == "graphs" else RepeatedSteps
            self.steps: Steps = kind(learner, on_device(stream, learner.device), Position(), LAP)
        self.positions = itertools.cycle(Position(0, batch) for batch in range(stream.steps(0)))

    def queue(self) -> None:
        """Queue LAP steps."""
        with self.stream_context:
            self.steps.queue(list(itertools.islice(self.positions, LAP)))

    def read(self) -> None:
        """Wait for the steps, and read what they log."""
        with self.stream_context:
            self.steps.read()


class RepeatedSteps(Steps):
    """Run eager steps over the same batches again and again."""

    def step(self, position: Position) -> None:
        """Queue the step of the batch at a position."""
        self.learn(self.to_device(self.stream.batch(position)))


def fill(learner: Learner, train: Source) -> None:
    """Fill a learner's memory with samples from all over the training set."""
    samples = train[torch.linspace(0, len(train) - 1, learner.memory.capacity).long()]
    for name, rows in learner.arrive(samples.x.to(learner.device), samples.y.to(learner.device)).items():
        learner.memory.rows[name][:-1] = rows
    learner.memory.size.fill_(learner.memory.capacity)
    learner.memory.seen.fill_(len(train))
