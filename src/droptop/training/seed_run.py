"""Train one seed of one run: from a stream and a learner to a folder, from wherever it stopped last time.

`SeedRun.train` is the loop. Steps are queued in blocks, and a generator's `yield` after each block lets other seeds of
the process queue theirs while the device works (`concurrent_seeds.py`).
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from droptop.errors import Diverged, DroptopError, wrong
from droptop.learner import Learner
from droptop.results.seed_result import seed_result
from droptop.runs.build import build_learner, build_stream
from droptop.runs.config import Config
from droptop.runs.folder import is_done, read_metrics, seed_folder
from droptop.runs.spec_file import write_spec
from droptop.streams import Stream
from droptop.system.files import write_json
from droptop.system.locks import folder_lock
from droptop.system.short_names import short_name
from droptop.training.attention_recorder import AttentionRecorder
from droptop.training.device_stream import on_device
from droptop.training.evaluation import confusion, evaluation_lines, predict_tests
from droptop.training.graphs import Uncapturable
from droptop.training.kept_steps import KeptSteps, steps_key
from droptop.training.metrics_file import MetricsFile
from droptop.training.observer import Job, SeedProgress
from droptop.training.record_files import write_moment
from droptop.training.seed_checkpoints import SeedCheckpoints
from droptop.training.seed_manifest import forget, write_manifest
from droptop.training.stepping import StepRecord, Steps
from droptop.training.tracking import Logbook
from droptop.types import Position

MOST_CONFUSED = 200  # classes up to which confusion is recorded, which grows with their square


class Interrupted(DroptopError):
    """Say that the run was asked to stop; what was done is saved."""


class StepBlock(NamedTuple):
    """Name batches of one task, from start to stop - 1, after which the device is waited for."""

    task: int
    start: int
    stop: int

    @property
    def positions(self) -> list[Position]:
        """Return the positions of the batches."""
        return [Position(self.task, batch) for batch in range(self.start, self.stop)]


def blocks(stream: Stream, position: Position, size: int, eval_every: int | None) -> Iterator[StepBlock]:
    """Yield the rest of a stream in blocks of at most `size` batches.

    A block ends in the middle and at the end of every task, and where an evaluation is due.
    """
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
    """Return the number of batches after which half of a task is over."""
    return stream.steps(task) // 2


class SeedRun:
    """Train one seed. `stop` is asked after every block; `report` is told of progress, `warn` of what is odd."""

    def __init__(
        self,
        config: Config,
        run: Path,
        seed: int,
        report: Callable[[SeedProgress], None],
        stop: Callable[[], bool] = lambda: False,
        warn: Callable[[str], None] = lambda text: None,
        name: str = "",
    ) -> None:
        self.config, self.run, self.seed = config, run, seed
        self.report, self.stop, self.warn = report, stop, warn
        self.folder = seed_folder(run, seed)
        self.name = name or f"{short_name(config.options.debias)} seed {seed}"
        self.checkpoints = SeedCheckpoints(config, run, seed, warn)
        self.seeds_in_process = 1  # this one included
        self.kept: KeptSteps | None = None  # what it trains in, where it is not to make one for itself

    @cached_property
    def steps_key(self) -> str | None:
        """Return by what runs are alike that can train by the same steps, one after the other."""
        return steps_key(self.config)

    def __call__(self) -> None:
        """Do the whole work at once."""
        self.kept = self.kept or KeptSteps(self.config.options.device)
        with self.kept.stream_context:
            for _ in self.work():
                pass

    def work(self) -> Iterator[None]:
        """Train from where the folder says to the end, and write result.json; yield while the device is busy.

        Raise Interrupted if asked to stop, Diverged if a loss is not finite.
        """
        with folder_lock(self.folder, self.warn):
            if is_done(self.run, self.seed, self.config.configuration()):
                return
            forget(self.folder, self.warn)
            stream = build_stream(self.config, self.seed)
            write_spec(self.folder, stream.spec)
            position, metrics_bytes, steps = self.prepare_steps(stream)
            self.metrics = MetricsFile(self.folder / "metrics.jsonl", metrics_bytes)
            self.log = Logbook(
                self.config, self.run, self.seed, stream.spec.classes, stream.tasks, self.warn, self.name
            )
            try:
                self.log.begin()
                yield from self.train(steps, position)
                lines = read_metrics(self.run, self.seed)
                eval_every = self.config.options.eval_every
                result = seed_result(lines, stream.spec.classes, stream.tasks, eval_every, stream.cue)
                self.log.end(lines, result)
            finally:
                self.checkpoints.wait_quietly()  # the folder stays locked while it is written to
                self.metrics.close()
                self.log.close()
            self.checkpoints.tidy()
            write_manifest(self.config, self.folder, self.seed, self.metrics.hash.hexdigest(), result)
            write_json(self.folder / "result.json", result)

    def prepare_steps(self, stream: Stream, eagerly: bool = False) -> tuple[Position, int, Steps]:
        """Return the next batch, the bytes of metrics before it, and the steps of a learner that is restored to there.

        Without graphs if `eagerly`, or where a capture is impossible.
        """
        learner = build_learner(self.config, stream, self.seed)
        kept = self.kept or KeptSteps(self.config.options.device)
        position, metrics_bytes = self.checkpoints.restore(learner)
        try:
            steps = kept.take(self.config, learner, on_device(stream, learner.device), position, eagerly)
            return position, metrics_bytes, steps
        except Uncapturable as reason:
            self.warn(f"{self.config.options.method} runs eagerly: it cannot be captured ({reason})")
        del learner  # the failed capture has changed it, and the next one needs its memory
        return self.prepare_steps(stream, eagerly=True)

    def train(self, steps: Steps, position: Position) -> Iterator[None]:
        """Train to the end of the stream, one block of steps at a time; yield while the device is busy."""
        learner, stream = steps.learner, steps.stream
        step = learner.clock["step"]
        self.checkpoints.start_clock()
        self.report_progress(stream, step, min(position.task, len(stream.tasks) - 1), float("nan"))
        kappa, recorder = adaptive_kappa(learner), self.attention_recorder(stream)

        for block in blocks(stream, position, len(steps.log.rows), self.config.options.eval_every):
            steps.queue(block.positions)
            yield

            # A line of metrics per step; the last one of a block has the evaluation, if one is due.
            task_ends = block.stop == stream.steps(block.task)
            for here, record in zip(block.positions, steps.read()):
                step += 1
                self.check_finite(record, step, here)
                line = self.metrics_line(step, block.task, record, kappa)
                if here.batch + 1 == block.stop:
                    line |= self.evaluate_block(steps, step, block.task, task_ends)
                self.metrics.append(line)
                self.log.line(line)
                kappa = record.kappa

            if recorder is not None and (task_ends or block.stop == middle(stream, block.task)):
                recorder.record(learner, step, block.task)
            position = Position(block.task + 1) if task_ends else Position(block.task, block.stop)
            self.report_progress(stream, step, block.task, record.loss)

            finished, stopped = position.task == len(stream.tasks), self.stop()
            if finished or stopped or self.checkpoints.due(self.seeds_in_process):
                self.checkpoints.save(learner, position, self.metrics)
            if finished or stopped:
                if self.checkpoints.writing is not None:
                    yield
                self.checkpoints.wait()
            if stopped and not finished:
                raise Interrupted(f"stopped at step {step}")

    def report_progress(self, stream: Stream, step: int, task: int, loss: float) -> None:
        """Report the step, the task and the loss, of all steps and tasks of the stream."""
        self.report(SeedProgress(step, len(stream), task, len(stream.tasks), loss))

    def check_finite(self, record: StepRecord, step: int, position: Position) -> None:
        """Raise Diverged if the loss of a step or its gradient was not finite."""
        if not record.finite:
            raise Diverged(
                f"{self.name}: task {position.task}, batch {position.batch}: the {wrong(record.loss)} at step "
                f"{step}; try a lower --lr"
            )

    def metrics_line(self, step: int, task: int, record: StepRecord, kappa: list[float]) -> dict[str, Any]:
        """Return a step's line of metrics.jsonl; `kappa` are the intensities before it, of which changes are noted."""
        line: dict[str, Any] = {"step": step, "task": task, "loss": record.loss}
        if changed := {str(group): new for group, (old, new) in enumerate(zip(kappa, record.kappa)) if old != new}:
            line["kappa"] = changed
        if record.dropped is not None:
            line["dropped"] = record.dropped
        return line

    def evaluate_block(self, steps: Steps, step: int, task: int, task_ends: bool) -> dict[str, Any]:
        """Return what the last line of a block has besides: an evaluation, if one is due, and the report of a task.

        At the end of a task, write its confusion matrices too.
        """
        learner, stream = steps.learner, steps.stream
        every, classes = self.config.options.eval_every, len(stream.spec.classes)
        line: dict[str, Any] = {}
        if task_ends or (every and step % every == 0):
            predictions = predict_tests(learner, stream.tests, steps.predict)
            line |= evaluation_lines(predictions, classes)
        if task_ends:
            line |= {"task_end": True, **learner.report()}
            if classes <= MOST_CONFUSED:
                counts = {name: confusion(of_test, classes) for name, of_test in predictions.items()}
                about = {"classes": stream.spec.classes, "tasks": stream.tasks}
                write_moment(self.folder / "confusion", step, task, counts, **about)
        return line

    def attention_recorder(self, stream: Stream) -> AttentionRecorder | None:
        """Return what records the attention of a run's first seeds; None for others, or fewer than two images."""
        options = self.config.options
        if self.seed not in self.config.seeds[: options.maps_seeds] or options.maps == 0:
            return None
        recorder = AttentionRecorder(self.folder / "maps", stream, options.maps)
        return recorder if len(recorder.samples) > 1 else None


def adaptive_kappa(learner: Learner) -> list[float]:
    """Return the intensities of a learner; [] where they cannot change."""
    if learner.debias.droptop is None or not learner.debias.adapts:
        return []
    return learner.debias.droptop.intensity.kappa.tolist()


def seed_run(job: Job, report: Callable[[SeedProgress], None], warn: Callable[[str], None]) -> SeedRun:
    """Return the SeedRun that trains a job."""
    return (job.kind or SeedRun)(job.config, job.run, job.seed, report, warn=warn, name=job.name)
