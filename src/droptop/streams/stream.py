"""A stream: classes split into tasks, whose images arrive once, in an order that only the seed decides.

    for x, y, task, shortcut in stream:      # in droptop's loop or in anyone's own
        ...
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from droptop.errors import BadRequest, require
from droptop.rng import generator
from droptop.streams.prefetch import prefetch


@dataclass(frozen=True)
class Spec:
    """What a learner must know of the images before it sees one."""

    shape: tuple[int, int, int]  # channels, height, width
    classes: tuple[str, ...]
    dtype: torch.dtype = torch.uint8
    mean: float | tuple[float, ...] = 0.0  # of pixels in [0, 1], one for all channels or one each
    std: float | tuple[float, ...] = 1.0


@dataclass(frozen=True)
class Samples:
    """Images with their labels and, where the stream knows its shortcut, the truth about it."""

    x: Tensor  # N, channels, height, width
    y: Tensor  # N
    follows: Tensor | None = None  # N: does this sample's shortcut point to its class?
    shortcut: Tensor | None = None  # N, height, width: the shortcut's pixels

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: Tensor) -> "Samples":
        follows, shortcut = self.follows, self.shortcut
        return Samples(self.x[rows], self.y[rows], None if follows is None else follows[rows],
                       None if shortcut is None else shortcut[rows])


class Source(Protocol):
    """Where samples come from, by row: memory (`Samples` are their own source), or a disk."""

    @property
    def y(self) -> Tensor: ...
    def __len__(self) -> int: ...
    def __getitem__(self, rows: Tensor) -> Samples: ...


class Batch(NamedTuple):
    x: Tensor
    y: Tensor
    task: int
    shortcut: Tensor | None


class Position(NamedTuple):
    """The next batch of a stream."""

    task: int = 0
    batch: int = 0


@dataclass(frozen=True)
class StreamConfig:
    tasks: int = 5
    """Tasks the classes are split into, evenly."""
    class_order: str = "natural"
    """Order in which classes arrive: natural, random (by the seed), or labels such as 3,1,0,2."""
    batch: int = 32
    """Samples a step."""
    drop_last: bool = True
    """Leave out a task's last batch where it is not full."""

    def __post_init__(self) -> None:
        require(self.tasks >= 1, "tasks", "a number of tasks from 1", self.tasks)
        require(self.batch >= 1, "batch", "a number of samples from 1", self.batch)

    def split(self, classes: int, seed: int) -> tuple[tuple[int, ...], ...]:
        """The classes of each task."""
        if self.class_order == "natural":
            order = list(range(classes))
        elif self.class_order == "random":
            order = torch.randperm(classes, generator=generator(seed, "classes")).tolist()
        else:
            order = [int(label) if label.strip().isdigit() else -1 for label in self.class_order.split(",")]
            require(sorted(order) == list(range(classes)), "class_order",
                    f"natural, random, or the labels 0 to {classes - 1} in some order", self.class_order)
        require(classes % self.tasks == 0, "tasks", f"a divisor of the {classes} classes", self.tasks)
        size = classes // self.tasks
        return tuple(tuple(order[start:start + size]) for start in range(0, classes, size))


class Stream:
    def __init__(self, name: str, spec: Spec, train: Source, tests: Mapping[str, Source], config: StreamConfig,
                 seed: int, limit: int | None = None) -> None:
        self.name, self.spec, self.train, self.tests = name, spec, train, tests
        self.config, self.seed, self.limit = config, seed, limit
        self.tasks = config.split(len(spec.classes), seed)
        for task in range(len(self.tasks)):
            if self.steps(task) == 0:
                raise BadRequest(f"task {task} of {name} has {len(self.order[task])} samples, fewer than one batch of "
                                 f"{config.batch}: raise --limit, lower --batch or pass --no-drop-last")

    @cached_property
    def order(self) -> list[Tensor]:
        """For each task the rows of `train` in the order in which they arrive."""
        rows = [torch.isin(self.train.y, torch.tensor(classes)).nonzero()[:, 0] for classes in self.tasks]
        shuffled = [r[torch.randperm(len(r), generator=generator(self.seed, "order", t))] for t, r in enumerate(rows)]
        return [r[: self.limit] for r in shuffled]

    def steps(self, task: int) -> int:
        """Batches of a task."""
        full, rest = divmod(len(self.order[task]), self.config.batch)
        return full + (rest > 0 and not self.config.drop_last)

    def __len__(self) -> int:
        return sum(self.steps(task) for task in range(len(self.tasks)))

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def batches(self, start: Position = Position()) -> Iterator[Batch]:
        """Every batch from `start` on; the same ones whatever was read before. A disk's are read ahead."""
        return self.read(start) if isinstance(self.train, Samples) else prefetch(self.read(start))

    def read(self, start: Position) -> Iterator[Batch]:
        for task in range(start.task, len(self.tasks)):
            for index in range(start.batch if task == start.task else 0, self.steps(task)):
                rows = self.order[task][index * self.config.batch:(index + 1) * self.config.batch]
                samples = self.train[rows]
                yield Batch(samples.x, samples.y, task, samples.shortcut)
