"""One seed of one run: stream x learner -> a folder, from wherever it stopped last time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from droptop import checkpoint
from droptop.config import Config
from droptop.engine.build import build_learner, build_stream
from droptop.engine.evaluate import evaluate
from droptop.engine.shortcut import shortcut_share
from droptop.errors import BadCheckpoint, BadRequest, Diverged, DroptopError
from droptop.learner import Learner
from droptop.results.folder import MetricsFile, locked, matches, read_metrics, seed_folder, seed_result, write_json
from droptop.streams import Batch, Position, Stream

MAX_COST = 0.03  # share of the time that checkpoints may take


class Interrupted(DroptopError):
    """Asked to stop; what was done is saved."""


class Progress(NamedTuple):
    step: int
    steps: int
    task: int
    tasks: int
    loss: float


@dataclass
class Clock:
    """When is a checkpoint due? By time, so that they cost little whatever a step or a checkpoint costs."""

    interval: float  # seconds, at least
    last: float
    cost: float = 0.0

    def due(self) -> bool:
        return time.monotonic() - self.last >= max(self.interval, self.cost / MAX_COST)


class SeedRun:
    """Trains one seed. `stop` is asked after every step; `report` and `warn` are told what a person might read."""

    def __init__(self, config: Config, run: Path, seed: int, report: Callable[[Progress], None],
                 stop: Callable[[], bool] = lambda: False, warn: Callable[[str], None] = lambda text: None) -> None:
        self.config, self.run, self.seed = config, run, seed
        self.report, self.stop, self.warn = report, stop, warn
        self.folder = seed_folder(run, seed)
        self.checkpoints = self.folder / "checkpoints"

    def __call__(self) -> None:
        with locked(self.folder):
            if (self.folder / "result.json").exists():
                return
            stream = build_stream(self.config, self.seed)
            learner = build_learner(self.config, stream, self.seed)
            position, mark = self.restore(learner)
            self.metrics = MetricsFile(self.folder / "metrics.jsonl", mark)
            try:
                self.train(stream, learner, position)
            finally:
                self.metrics.close()
            lines = read_metrics(self.run, self.seed)
            result = seed_result(lines, stream.spec.classes, stream.tasks, self.config.options.eval_every)
            write_json(self.folder / "result.json", result)

    def train(self, stream: Stream, learner: Learner, position: Position) -> None:
        clock = Clock(self.config.options.checkpoint_seconds, time.monotonic())
        kappa = kappas(learner)
        self.report(Progress(learner.clock["step"], len(stream), position.task, len(stream.tasks), float("nan")))
        for batch in stream.batches(position):
            line, kappa = self.step(stream, learner, batch, position, kappa)
            self.metrics.append(line)
            last = position.batch + 1 == stream.steps(batch.task)
            position = Position(batch.task + 1) if last else Position(batch.task, position.batch + 1)
            self.report(Progress(line["step"], len(stream), batch.task, len(stream.tasks), line["loss"]))
            finished, stopped = position.task == len(stream.tasks), self.stop()
            if finished or stopped or clock.due():
                started = time.monotonic()
                self.save(learner, position)
                clock = Clock(clock.interval, time.monotonic(), time.monotonic() - started)
            if stopped and not finished:
                raise Interrupted(f"stopped at step {line['step']}")

    def step(self, stream: Stream, learner: Learner, batch: Batch, position: Position,
             before: list[float]) -> tuple[dict[str, Any], list[float]]:
        """Learns from one batch; gives its line of metrics.jsonl and the intensities after it."""
        try:
            loss = learner.observe(batch.x, batch.y, batch.task)
        except Diverged as error:
            raise Diverged(f"task {batch.task}, batch {position.batch}: {error}; try a lower --lr") from None
        line: dict[str, Any] = {"step": learner.clock["step"], "task": batch.task, "loss": float(loss)}
        kappa = kappas(learner)
        if changed := {str(group): new for group, (old, new) in enumerate(zip(before, kappa)) if old != new}:
            line["kappa"] = changed
        if learner.trace is not None and batch.shortcut is not None and learner.config.augment == "none":
            line["dropped"] = shortcut_share(learner.trace.mask.cpu(), batch.shortcut)  # of images as they are
        task_end = position.batch + 1 == stream.steps(batch.task)
        every = self.config.options.eval_every
        if task_end or (every and line["step"] % every == 0):
            line["eval"] = {name: evaluate(learner, test) for name, test in stream.tests.items()}
        if task_end:
            line["task_end"] = True
        return line, kappa

    def save(self, learner: Learner, position: Position) -> None:
        about = {"config": self.config.fingerprint(), "seed": self.seed, "position": list(position),
                 "metrics": self.metrics.mark()}
        checkpoint.write(self.checkpoints, checkpoint.step_name(learner.clock["step"]), learner.state_dict(), about)

    def restore(self, learner: Learner) -> tuple[Position, int]:
        """Loads the newest checkpoint that is whole; gives the next batch and the metrics' length at that point."""
        for header in checkpoint.newest_first(self.checkpoints):
            try:
                tensors, about = checkpoint.read(header)
            except BadCheckpoint as error:
                self.warn(f"{error}; going back to what was before it")
                continue
            if about["config"] != self.config.fingerprint():
                raise BadRequest(f"{self.run / 'config.toml'} has changed since {header} was written")
            if not matches(self.folder / "metrics.jsonl", about["metrics"]):
                self.warn(f"metrics.jsonl does not go with {header}; going back to what was before it")
                continue
            learner.load_state_dict(tensors)
            return Position(*about["position"]), about["metrics"]["bytes"]
        return Position(), 0


def kappas(learner: Learner) -> list[float]:
    """The intensities, where they can change."""
    if learner.debias is None or not learner.debias.adapts:
        return []
    return learner.debias.intensity.kappa.tolist()
