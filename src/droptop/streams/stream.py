"""A stream: classes split into tasks, whose images arrive once, in an order that depends on the seed alone.

    for x, y, task, shortcut in stream:      # in droptop's loop or in your own
        ...

`Stream` takes any source of samples; `droptop.streams` has those that are known by name.
"""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from droptop.errors import BadRequest, require
from droptop.options import BIASED, NO_CUE, RANDOM, REMOVED
from droptop.results.cue_sets import cue_by_name
from droptop.rng import generator
from droptop.streams.order import blurred, held_out, long_tailed, noisy_labels, rows_of_tasks, split_classes
from droptop.streams.painted import USUAL_CORRELATION, MasksReader, Shortcut, with_shortcut
from droptop.streams.prefetch import prefetch
from droptop.types import Batch, Position, Samples, Source, Spec, Subset, check_source, in_memory, read, sizes_text

HELD_OUT = "held-out"  # the test set of training images that are kept back


@dataclass(frozen=True)
class StreamConfig:
    """Hold the options that every stream has."""

    tasks: int = 5
    """Number of tasks the classes are split into, evenly; 0: two classes per task (the last may have one)."""
    class_order: str = "natural"
    """Order in which the classes arrive: natural, random (by the seed), or all of them by label or name, such as
    3,1,0,2."""
    split: str | None = None
    """Classes of each task by label or name, such as 0,1/2,3; classes that are not named are left out. By default
    --tasks and --class-order decide."""
    imbalance: float = 1.0
    """How many times as many training samples the most frequent class has as the rarest; exponential in between, in an
    order drawn by the seed."""
    label_noise: float = 0.0
    """Percent of each task's training labels that are wrong: another class of the task, at random."""
    blurry: float = 0.0
    """Percent of each task's samples that change places with samples of other tasks, as in i-Blurry."""
    hold_out: float = 0.0
    """Percent of each class's training images that are kept back and tested on instead of the test sets, so that
    options can be tuned."""
    batch: int = 32
    """Stream samples per step."""
    drop_last: bool = True
    """Leave out a task's last batch where it is not full."""
    shortcut: str = NO_CUE
    """A cue to paint that tells the class: none, sticker, watermark, frame, colour, background (where there are masks)
    or frequency; adds the test sets biased, removed and random."""
    shortcut_correlation: float = USUAL_CORRELATION
    """Share of the training images whose painted cue points to their class."""
    shortcut_strength: float | None = None
    """How much of the image the cue hides where it is, up to 1; by default 0.5 (watermark, colour), 0.2 (frequency,
    whose waves go from black to white at 1) or 1."""
    shortcut_size: int | None = None
    """Pixels of a sticker's side, a frame's width or the height of a watermark's text; by default 5, 2 and 8 of 32."""

    def __post_init__(self) -> None:
        require(self.tasks >= 0, "tasks", "a number of tasks from 1, or 0 for two classes per task", self.tasks)
        require(1 <= self.imbalance < float("inf"), "imbalance", "a ratio from 1", self.imbalance)
        require(0 <= self.label_noise <= 100, "label_noise", "a percentage from 0 to 100", self.label_noise)
        require(0 <= self.blurry <= 100, "blurry", "a percentage from 0 to 100", self.blurry)
        require(0 <= self.hold_out < 100, "hold_out", "a percentage from 0 to below 100", self.hold_out)
        require(self.batch >= 1, "batch", "a number of samples from 1", self.batch)
        self.painted.check()

    @property
    def painted(self) -> Shortcut:
        """Return the cue to paint, and how."""
        return Shortcut(self.shortcut, self.shortcut_correlation, self.shortcut_strength, self.shortcut_size)


class Given(NamedTuple):
    """Hold what a stream was given, before anything was painted or held out."""

    train: Source
    tests: Mapping[str, Source]
    masks: MasksReader | None
    cue: Mapping[str, bool] | None


class Stream:
    """Give batches of training images, each image once, task after task; hold the test sets.

    Args:
        name: The name of the stream, for messages.
        spec: What the images are like, and the names of the classes.
        train: The training images.
        tests: The test sets by name.
        config: The options of the stream.
        seed: Decides the order of samples and, where options ask for it, of classes.
        limit: At most so many samples per task; None for all.
        masks: What gives the foregrounds of the training images and of the first test set; None where nobody knows.
        cue: Which test sets have the suspected shortcut as the training images have it (True), and which lack it
            (False); by default those lack it whose name begins with no-, without, removed or random, and the first of
            the others has it.

    Raises:
        BadRequest: Images or labels do not fit the spec, a task has no full batch, a test set has no sample of a task,
            or the images do not take the cue that is to be painted.
    """

    def __init__(
        self,
        name: str,
        spec: Spec,
        train: Source,
        tests: Mapping[str, Source],
        config: StreamConfig,
        seed: int,
        limit: int | None = None,
        masks: MasksReader | None = None,
        cue: Mapping[str, bool] | None = None,
    ) -> None:
        if not isinstance(spec, Spec):
            raise BadRequest(f"a stream takes a droptop.Spec of its images, not a {type(spec).__name__}")
        if not isinstance(tests, Mapping):
            raise BadRequest(f'test sets come by name, such as {{"test": samples}}, not as a {type(tests).__name__}')
        require(seed >= 0, "seed", "a number from 0", seed)
        check_source(spec, train, f"training images of {name}")
        for test, source in tests.items() if not config.hold_out else ():  # else nothing looks at them
            check_source(spec, source, f"test set {test} of {name}")
        if cue is not None and not (isinstance(cue, Mapping) and cue.keys() <= tests.keys()):
            raise BadRequest(f'cue says by name which test sets have it, such as {{"test": True}}, not {cue!r}')
        self.given, self.held = Given(train, tests, masks, cue), held_out(train.y, config.hold_out)
        held = self.held.nonzero()[:, 0] if config.hold_out else None
        if held is not None:
            tests, cue = {HELD_OUT: train[held] if isinstance(train, Samples) else Subset(train, held)}, None
        if config.shortcut != NO_CUE:
            train, tests = with_shortcut(config.painted, spec, seed, train, tests, masks, held)
            cue = {test: test == BIASED for test in (BIASED, REMOVED, RANDOM) if test in tests}
        self.name, self.spec, self.train, self.tests = name, spec, train, tests
        self.config, self.seed, self.limit = config, seed, limit
        self.cue = cue_by_name(tests) if cue is None else dict(cue)
        self.tasks = split_classes(spec.classes, config.tasks, config.class_order, config.split, seed)
        tested = {test: set(source.y.unique().tolist()) for test, source in tests.items()}
        for task in range(len(self.tasks)):
            if self.steps(task) == 0:
                raise BadRequest(
                    f"task {task} of {name} has {len(self.order[task])} samples, fewer than one batch of "
                    f"{config.batch}: raise --limit, lower --batch or --imbalance, or pass --no-drop-last"
                )
            for test, labels in tested.items():
                if labels.isdisjoint(self.tasks[task]):
                    raise BadRequest(f"test set {test} of {name} has no samples of task {task}")

    def again(self, config: StreamConfig, seed: int, limit: int | None = None) -> "Stream":
        """Return a stream of the same images with other options, another seed and another limit.

        Raises BadRequest for another value of an option that the images were made with.
        """
        common = {field.name for field in fields(StreamConfig)}
        for field in fields(self.config):
            value = getattr(self.config, field.name)
            if field.name not in common and getattr(config, field.name) != value:
                raise BadRequest(f"{field.name} is {value} in {self.name}, whose images are made already")
        other = copy.copy(self)
        for name in ("task_rows", "order", "labels"):
            other.__dict__.pop(name, None)
        train, tests, masks, cue = self.given
        Stream.__init__(other, self.name, self.spec, train, tests, config, seed, limit, masks, cue)
        return other

    def __repr__(self) -> str:
        """Return what there is to learn and to test on, in two lines."""
        images, tests = sum(map(len, self.order)), [f"{name} ({len(source):,})" for name, source in self.tests.items()]
        return (
            f"Stream({self.name}: {len(self.spec.classes)} classes in {len(self.tasks)} tasks, {images:,} images of "
            f"{sizes_text(self.spec.shape)} in {len(self):,} steps,\n       tests {', '.join(tests)}; seed {self.seed})"
        )

    @cached_property
    def task_rows(self) -> list[Tensor]:
        """Return per task the rows of its classes in `train`, as many as arrive, shuffled."""
        left = (~self.held).nonzero()[:, 0]
        left = left[long_tailed(self.train.y[left], self.tasks, self.config.imbalance, self.seed)]
        rows = [left[rows] for rows in rows_of_tasks(self.train.y[left], self.tasks, len(self.spec.classes))]
        shuffled = [r[torch.randperm(len(r), generator=generator(self.seed, "order", t))] for t, r in enumerate(rows)]
        return [r[: self.limit] for r in shuffled]

    @cached_property
    def order(self) -> list[Tensor]:
        """Return per task the rows of `train` in the order in which they arrive."""
        return blurred(self.task_rows, self.config.blurry, self.seed)

    @cached_property
    def labels(self) -> Tensor:
        """Return the labels that the learner is given (N); those of `train` are the truth."""
        return noisy_labels(self.train.y, self.task_rows, self.tasks, self.config.label_noise, self.seed)

    def steps(self, task: int) -> int:
        """Return the number of batches of a task.

        Args:
            task: The number of the task, from 0.
        """
        full, rest = divmod(len(self.order[task]), self.config.batch)
        return full + (rest > 0 and not self.config.drop_last)

    def left_out(self, task: int) -> int:
        """Return the number of samples of a task that are in no batch, since batches are whole.

        Args:
            task: The number of the task, from 0.
        """
        return max(0, len(self.order[task]) - self.steps(task) * self.config.batch)

    def last_batch(self, task: int) -> int:
        """Return the number of samples in the last batch of a task.

        Args:
            task: The number of the task, from 0.
        """
        return min(len(self.order[task]) - (self.steps(task) - 1) * self.config.batch, self.config.batch)

    def __len__(self) -> int:
        """Return the number of batches of all tasks."""
        return sum(self.steps(task) for task in range(len(self.tasks)))

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def batch(self, position: Position) -> Batch:
        """Return the batch at a position.

        Args:
            position: A task, and the number of a batch in it, both from 0.
        """
        size = self.config.batch
        rows = self.order[position.task][position.batch * size : (position.batch + 1) * size]
        samples = read(self.train, rows)
        return Batch(samples.x, self.labels[rows], position.task, samples.shortcut)

    def batches(self, start: Position = Position()) -> Iterator[Batch]:
        """Return an iterator over the batches from a position on, the same ones whatever was read before.

        Images on a disk are read ahead by a thread.

        Args:
            start: The first batch.
        """
        return self.read(start) if in_memory(self.train) else prefetch(self.read(start))

    def read(self, start: Position) -> Iterator[Batch]:
        """Yield the batches from a position on, each read when it is asked for."""
        for task in range(start.task, len(self.tasks)):
            for index in range(start.batch if task == start.task else 0, self.steps(task)):
                yield self.batch(Position(task, index))
