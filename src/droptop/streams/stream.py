"""A stream: classes split into tasks, whose images arrive once, in an order that only the seed decides.

for x, y, task, shortcut in stream:      # in droptop's loop or in anyone's own
    ...
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from droptop.errors import BadRequest, require
from droptop.rng import generator
from droptop.streams.order import blurred, held_out, long_tailed, noisy_labels, split_classes
from droptop.streams.prefetch import prefetch
from droptop.types import Batch, Position, Samples, Source, Spec, Subset

HELD_OUT = "held-out"  # the test set of training images that are kept back


@dataclass(frozen=True)
class StreamConfig:
    tasks: int = 5
    """Tasks the classes are split into, evenly; 0: two classes a task, the last may have one."""
    class_order: str = "natural"
    """Order in which classes arrive: natural, random (by the seed), or all of them by label or name (3,1,0,2)."""
    split: str | None = None
    """Classes of each task by label or name (0,1/2,3), instead of tasks and class order; others are left out."""
    imbalance: float = 1.0
    """Long-tailed training data: the most frequent class over the least, exponential in between, order by the seed."""
    label_noise: float = 0.0
    """Percent of a task's training labels that are wrong: another class of that task, all alike."""
    blurry: float = 0.0
    """Percent of each task's samples that swap places with samples of other tasks, as in i-Blurry."""
    hold_out: float = 0.0
    """Percent of each class's training images that are kept back, and tested on instead of the test sets: to choose
    other options by."""
    batch: int = 32
    """Samples a step."""
    drop_last: bool = True
    """Leave out a task's last batch where it is not full."""

    def __post_init__(self) -> None:
        require(self.tasks >= 0, "tasks", "a number of tasks from 1, or 0 for two classes a task", self.tasks)
        require(1 <= self.imbalance < float("inf"), "imbalance", "a ratio from 1", self.imbalance)
        require(0 <= self.label_noise <= 100, "label_noise", "a percentage from 0 to 100", self.label_noise)
        require(0 <= self.blurry <= 100, "blurry", "a percentage from 0 to 100", self.blurry)
        require(0 <= self.hold_out < 100, "hold_out", "a percentage from 0 to below 100", self.hold_out)
        require(self.batch >= 1, "batch", "a number of samples from 1", self.batch)


class Stream:
    """Batches of training images, each once, task after task; `tests` by name to see what has been learned."""

    def __init__(
        self,
        name: str,
        spec: Spec,
        train: Source,
        tests: Mapping[str, Source],
        config: StreamConfig,
        seed: int,
        limit: int | None = None,
    ) -> None:
        self.held = held_out(train.y, config.hold_out)
        if config.hold_out:
            rows = self.held.nonzero()[:, 0]
            tests = {HELD_OUT: train[rows] if isinstance(train, Samples) else Subset(train, rows)}
        self.name, self.spec, self.train, self.tests = name, spec, train, tests
        self.config, self.seed, self.limit = config, seed, limit
        for part, source in (("training images", train), *((f"test set {test}", one) for test, one in tests.items())):
            if len(source.y) and not 0 <= int(source.y.min()) <= int(source.y.max()) < len(spec.classes):
                raise BadRequest(
                    f"labels of {name}, {part}, must lie in 0 to {len(spec.classes) - 1}, not "
                    f"{int(source.y.min())} to {int(source.y.max())}"
                )
        self.tasks = split_classes(spec.classes, config.tasks, config.class_order, config.split, seed)
        for task in range(len(self.tasks)):
            if self.steps(task) == 0:
                raise BadRequest(
                    f"task {task} of {name} has {len(self.order[task])} samples, fewer than one batch of "
                    f"{config.batch}: raise --limit, lower --batch or --imbalance, or pass --no-drop-last"
                )
            for test, source in tests.items():
                if not torch.isin(source.y, torch.tensor(self.tasks[task])).any():
                    raise BadRequest(f"test set {test} of {name} has no samples of task {task}")

    @cached_property
    def own(self) -> list[Tensor]:
        """For each task the rows of its classes in `train`, as many as arrive, shuffled."""
        left = (~self.held).nonzero()[:, 0]
        left = left[long_tailed(self.train.y[left], self.tasks, self.config.imbalance, self.seed)]
        rows = [left[torch.isin(self.train.y[left], torch.tensor(classes))] for classes in self.tasks]
        shuffled = [r[torch.randperm(len(r), generator=generator(self.seed, "order", t))] for t, r in enumerate(rows)]
        return [r[: self.limit] for r in shuffled]

    @cached_property
    def order(self) -> list[Tensor]:
        """For each task the rows of `train` in the order in which they arrive."""
        return blurred(self.own, self.config.blurry, self.seed)

    @cached_property
    def labels(self) -> Tensor:
        """N: what the learner is told of each row of `train`, whose own labels are the truth."""
        return noisy_labels(self.train.y, self.own, self.tasks, self.config.label_noise, self.seed)

    def steps(self, task: int) -> int:
        """Batches of a task."""
        full, rest = divmod(len(self.order[task]), self.config.batch)
        return full + (rest > 0 and not self.config.drop_last)

    def __len__(self) -> int:
        return sum(self.steps(task) for task in range(len(self.tasks)))

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def batch(self, position: Position) -> Batch:
        """The batch at a position."""
        size = self.config.batch
        rows = self.order[position.task][position.batch * size : (position.batch + 1) * size]
        samples = self.train[rows]
        return Batch(samples.x, self.labels[rows], position.task, samples.shortcut)

    def batches(self, start: Position = Position()) -> Iterator[Batch]:
        """Every batch from `start` on; the same ones whatever was read before. A disk's are read ahead."""
        return self.read(start) if isinstance(self.train, Samples) else prefetch(self.read(start))

    def read(self, start: Position) -> Iterator[Batch]:
        for task in range(start.task, len(self.tasks)):
            for index in range(start.batch if task == start.task else 0, self.steps(task)):
                yield self.batch(Position(task, index))
