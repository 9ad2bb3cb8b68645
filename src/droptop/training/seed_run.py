"""One seed of one run: stream x learner -> a folder, from wherever it stopped last time."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from droptop.errors import BadCheckpoint, BadRequest, Diverged, DroptopError, wrong
from droptop.learner import Learner
from droptop.results.seed_result import seed_result
from droptop.runs import checkpoint
from droptop.runs.build import build_learner, build_stream
from droptop.runs.config import Config
from droptop.runs.folder import is_done, read_metrics, seed_folder
from droptop.runs.spec_file import write_spec
from droptop.streams import Stream
from droptop.system.files import write_json
from droptop.system.locks import folder_lock
from droptop.training.attention_recorder import AttentionRecorder
from droptop.training.device_stream import on_device
from droptop.training.evaluation import ask, confusion, tallies
from droptop.training.graphs import GraphedSteps, Uncapturable, cuda_stream
from droptop.training.metrics_file import MetricsFile, matches
from droptop.training.observer import Job, SeedProgress
from droptop.training.record_files import write_moment
from droptop.training.stepping import StepRecord, Steps
from droptop.training.tracking import Logbook
from droptop.types import Position

MAX_COST = 0.03  # share of a process's time that checkpoints may take
GPU_BLOCK = 60  # steps queued on a GPU before their results are read; on a CPU nothing is queued
WRITERS = ThreadPoolExecutor(4, "checkpoints")  # write them while a GPU works on
MOST_CONFUSED = 200  # classes up to which confusion is recorded, which grows with their square


class Interrupted(DroptopError):
    """Asked to stop; what was done is saved."""


@dataclass
class CheckpointClock:
    """When is a checkpoint due? By time, so that they cost little whatever a step or a checkpoint costs."""

    interval: float  # seconds, at least
    last: float
    cost: float = 0.0

    def due(self, company: int) -> bool:
        """`company` seeds share this process, and what checkpoints may cost."""
        return time.monotonic() - self.last >= max(self.interval, self.cost * company / MAX_COST)


class StepBlock(NamedTuple):
    """Batches of one task after which the device is waited for."""

    task: int
    start: int
    stop: int


def blocks(stream: Stream, position: Position, size: int, eval_every: int | None) -> Iterator[StepBlock]:
    """The rest of the stream, cut in the middle and at the end of every task, where an evaluation is due, and after
    `size` batches."""
    done = sum(stream.steps(task) for task in range(position.task)) + position.batch
    for task in range(position.task, len(stream.tasks)):
        batch = position.batch if task == position.task else 0
        while batch < stream.steps(task):
            left = eval_every - done % eval_every if eval_every else size
            end = middle(stream, task) if batch < middle(stream, task) else stream.steps(task)
            stop = min(batch + min(size, left), end)
            yield StepBlock(task, batch, stop)
            done, batch = done + stop - batch, stop


def middle(stream: Stream, task: int) -> int:
    """Batches after which half of a task is over."""
    return stream.steps(task) // 2


class SeedRun:
    """Trains one seed. `stop` is asked after every block; `report` and `warn` are told what a person might read."""

    def __init__(
        self,
        config: Config,
        run: Path,
        seed: int,
        report: Callable[[SeedProgress], None],
        stop: Callable[[], bool] = lambda: False,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.config, self.run, self.seed = config, run, seed
        self.report, self.stop, self.warn = report, stop, warn
        self.folder = seed_folder(run, seed)
        self.checkpoints = self.folder / "checkpoints"
        self.name = f"{config.options.debias} seed {seed}"
        self.company = 1  # seeds that share this process, this one included
        self.writing: Future[float] | None = None  # the checkpoint on its way to the disk: seconds it takes

    def __call__(self) -> None:
        with cuda_stream(self.config.options.device):
            for _ in self.work():
                pass

    def work(self) -> Iterator[None]:
        """The whole run; yields while the device is busy with a block, so that another seed may queue its own."""
        with folder_lock(self.folder, self.warn):
            if is_done(self.run, self.seed):
                return
            stream = build_stream(self.config, self.seed)
            write_spec(self.folder, stream.spec)
            position, mark, steps = self.ready(stream)
            self.metrics = MetricsFile(self.folder / "metrics.jsonl", mark)
            self.log = Logbook(self.config, self.run, self.seed, stream.spec.classes, stream.tasks, self.warn)
            try:
                self.log.begin()
                yield from self.train(steps, position)
                lines = read_metrics(self.run, self.seed)
                result = seed_result(lines, stream.spec.classes, stream.tasks, self.config.options.eval_every)
                self.log.end(lines, result)
            finally:
                if self.writing is not None:
                    self.writing.exception()  # waits: while it is written to, the folder is locked
                self.metrics.close()
                self.log.close()
            write_json(self.folder / "result.json", result)

    def ready(self, stream: Stream, eagerly: bool = False) -> tuple[Position, int, Steps]:
        """Where to go on, how long the metrics were there, and a learner ready to be driven: by CUDA graphs on a GPU,
        unless it was asked not to be or cannot be captured."""
        learner = build_learner(self.config, stream, self.seed)
        position, mark = self.restore(learner)
        stream_there, on_gpu = on_device(stream, learner.device), learner.device.type == "cuda"
        if not on_gpu or eagerly or not self.config.options.graphs:
            return position, mark, Steps(learner, stream_there, position, GPU_BLOCK if on_gpu else 1)
        try:
            return position, mark, GraphedSteps(learner, stream_there, position, GPU_BLOCK)
        except Uncapturable as reason:
            self.warn(f"{self.config.options.method} runs eagerly: it cannot be captured ({reason})")
        del learner  # spoiled, and its memory is wanted
        return self.ready(stream, eagerly=True)

    def train(self, steps: Steps, position: Position) -> Iterator[None]:
        learner, stream = steps.learner, steps.stream
        clock = CheckpointClock(self.config.options.checkpoint_seconds, time.monotonic())
        step = learner.clock["step"]
        task = min(position.task, len(stream.tasks) - 1)  # the position after the last task is the end of that one
        self.report(SeedProgress(step, len(stream), task, len(stream.tasks), float("nan")))
        kappa, recorder = kappas(learner), self.recorder(stream)
        for block in blocks(stream, position, len(steps.log.rows), self.config.options.eval_every):
            for batch in range(block.start, block.stop):
                steps.advance(Position(block.task, batch))
            yield
            for batch, record in zip(range(block.start, block.stop), steps.read()):
                step += 1
                if not record.finite:
                    raise Diverged(
                        f"{self.name}: task {block.task}, batch {batch}: the {wrong(record.loss)} at step "
                        f"{step}; try a lower --lr"
                    )
                ended = batch + 1 == stream.steps(block.task)
                line = self.line(step, block.task, record, kappa)
                if batch + 1 == block.stop:
                    line |= self.examine(steps, step, block.task, ended)
                self.metrics.append(line)
                self.log.line(line)
                kappa = record.kappa
            if recorder is not None and block.stop in (middle(stream, block.task), stream.steps(block.task)):
                recorder.record(learner, step, block.task)
            position = Position(block.task + 1) if ended else Position(block.task, block.stop)
            self.report(SeedProgress(step, len(stream), block.task, len(stream.tasks), record.loss))
            finished, stopped = position.task == len(stream.tasks), self.stop()
            if finished or stopped or (clock.due(self.company) and (self.writing is None or self.writing.done())):
                cost = self.save(learner, position)
                clock = CheckpointClock(clock.interval, time.monotonic(), cost)
            if (finished or stopped) and self.writing is not None:
                yield
            if finished or stopped:
                self.saved()
            if stopped and not finished:
                raise Interrupted(f"stopped at step {step}")

    def line(self, step: int, task: int, record: StepRecord, kappa: list[float]) -> dict[str, Any]:
        """A step's line of metrics.jsonl."""
        line: dict[str, Any] = {"step": step, "task": task, "loss": record.loss}
        if changed := {str(group): new for group, (old, new) in enumerate(zip(kappa, record.kappa)) if old != new}:
            line["kappa"] = changed
        if record.dropped is not None:
            line["dropped"] = record.dropped
        return line

    def examine(self, steps: Steps, step: int, task: int, ended: bool) -> dict[str, Any]:
        """What the last line of a block also says: the evaluation if one is due. At the end of a task, leaves a record
        of what is taken for what."""
        learner, stream = steps.learner, steps.stream
        every, classes = self.config.options.eval_every, len(stream.spec.classes)
        found: dict[str, Any] = {}
        if ended or (every and step % every == 0):
            answers = {name: ask(learner, test, steps.predict) for name, test in stream.tests.items()}
            found["eval"] = {name: tallies(own, classes) for name, own in answers.items()}
        if ended:
            found |= {"task_end": True, **learner.report()}
            if classes <= MOST_CONFUSED:
                counts = {name: confusion(own, classes) for name, own in answers.items()}
                write_moment(
                    self.folder / "confusion", step, task, counts, classes=stream.spec.classes, tasks=stream.tasks
                )
        return found

    def recorder(self, stream: Stream) -> AttentionRecorder | None:
        """Watches a run's first seeds, where there is more than one image to look at."""
        options = self.config.options
        if self.seed not in self.config.seeds[: options.maps_seeds] or options.maps == 0:
            return None
        recorder = AttentionRecorder(self.folder / "maps", stream, options.maps)
        return recorder if len(recorder.samples) > 1 else None

    def save(self, learner: Learner, position: Position) -> float:
        """Writes a checkpoint, or has it written while a GPU works on; gives the seconds that it takes, or that the
        last one took to be written."""
        started = time.monotonic()
        about = {
            "config": self.config.fingerprint(),
            "seed": self.seed,
            "position": list(position),
            "metrics": self.metrics.mark(),
        }
        name = checkpoint.step_name(learner.clock["step"])
        if not self.beside(learner):
            return timed(checkpoint.write, self.checkpoints, name, learner.state_dict(), about)
        before = self.saved()
        tensors = {key: value.to("cpu", copy=True) for key, value in learner.state_dict().items()}
        self.writing = WRITERS.submit(timed, checkpoint.write, self.checkpoints, name, tensors, about)
        return max(time.monotonic() - started, before)

    def beside(self, learner: Learner) -> bool:
        """Are checkpoints written beside training? A CPU is busy with either."""
        return learner.device.type != "cpu"

    def saved(self) -> float:
        """Waits until the last checkpoint is on the disk, and gives the seconds that took; raises what kept it from
        getting there."""
        if self.writing is None:
            return 0.0
        writing, self.writing = self.writing, None
        return writing.result()

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


def timed(work: Callable[..., None], *given: Any) -> float:
    """Does it; gives the seconds it took."""
    started = time.monotonic()
    work(*given)
    return time.monotonic() - started


def kappas(learner: Learner) -> list[float]:
    """The intensities, where they can change."""
    if learner.debias is None or not learner.debias.adapts:
        return []
    return learner.debias.intensity.kappa.tolist()


def seed_run(job: Job, report: Callable[[SeedProgress], None], warn: Callable[[str], None]) -> SeedRun:
    """Return what trains a job."""
    return (job.kind or SeedRun)(job.config, job.run, job.seed, report, warn=warn)
