"""The types that travel through every room: what images are like, images with labels, batches, rows of columns."""

import dataclasses
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeGuard

import torch
from torch import Tensor

from droptop.errors import BadBatch, BadRequest

Rows = dict[str, Tensor]  # columns by name, one row per sample
Tasks = tuple[tuple[int, ...], ...]  # classes of each task


def split_rows(rows: Mapping[str, Tensor], sizes: int | list[int]) -> list[Rows]:
    """Cut rows into parts, as `Tensor.split` cuts a tensor."""
    columns = {name: column.split(sizes) for name, column in rows.items()}
    return [dict(zip(columns, parts)) for parts in zip(*columns.values())]


@dataclass(frozen=True)
class Spec:
    """Describe images to a learner before it sees one.

    Args:
        shape: Channels, height and width.
        classes: The names of the classes; a label is a position in it.
        dtype: The type of the images: uint8 from 0 to 255, or floating point from 0 to 1.
        mean: What is subtracted from pixels, on a scale from 0 to 1 whatever their type; one number for all channels,
            or one per channel. A ViT takes its `pixel_mean` instead.
        std: What they are then divided by, likewise. A ViT takes its `pixel_std` instead.

    Raises:
        BadRequest: A class name is missing or repeated, the shape is not channels, height and width, the type is of
            another kind, or mean and std do not go with the channels.
    """

    shape: tuple[int, int, int]
    classes: tuple[str, ...]
    dtype: torch.dtype = torch.uint8
    mean: float | tuple[float, ...] = 0.0
    std: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        names = self.classes
        if isinstance(names, str | int) or not names or len(set(names)) < len(names):
            raise BadRequest(f"classes must be one name or more, each another, not {names!r}")
        if len(self.shape) != 3 or min(self.shape) < 1:
            raise BadRequest(f"shape must be channels, height and width, not {self.shape}")
        if self.dtype != torch.uint8 and not self.dtype.is_floating_point:
            raise BadRequest(f"dtype must be torch.uint8 or floating point, not {self.dtype}")
        for name, least in (("mean", -math.inf), ("std", 0)):
            value = getattr(self, name)
            numbers = value if isinstance(value, tuple) else (value,)
            if len(numbers) not in (1, self.shape[0]) or not all(least < number < math.inf for number in numbers):
                above = " above 0" if name == "std" else ""
                raise BadRequest(f"{name} must be one number{above}, or one per channel, not {value}")
        if self.shape[2] in (1, 3) and self.shape[0] > 4:
            warnings.warn(
                f"shape is channels, height and width: {self.shape} are images of {self.shape[0]} channels",
                stacklevel=3,
            )


@dataclass(frozen=True)
class Samples:
    """Hold images with their labels and, where the stream knows its shortcut, the truth about the shortcut.

    Args:
        x: The images (N, channels, height, width).
        y: The labels (N), int64.
        follows: N: whether the shortcut of this sample points to its class.
        shortcut: N, height, width: the pixels of the shortcut.

    Raises:
        BadBatch: A part is no tensor, labels are not int64, or there is not one label per image.
    """

    x: Tensor
    y: Tensor
    follows: Tensor | None = None
    shortcut: Tensor | None = None

    def __post_init__(self) -> None:
        for name, part in vars(self).items():
            if not isinstance(part, Tensor) and (part is not None or name in ("x", "y")):
                raise BadBatch(f"samples are tensors; {name} is a {type(part).__name__}: torch.as_tensor makes one")
        if len(self.x) != len(self.y):
            raise BadBatch(f"images need a label each: there are {len(self.x)} images and {len(self.y)} labels")
        if self.y.dtype != torch.int64:
            raise BadBatch(f"labels must be int64, not {self.y.dtype}")

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: Tensor) -> "Samples":
        """Return the samples of these rows."""
        follows, shortcut = self.follows, self.shortcut
        return Samples(
            self.x[rows],
            self.y[rows],
            None if follows is None else follows[rows],
            None if shortcut is None else shortcut[rows],
        )


class Source(Protocol):
    """Give samples by row, from memory (`Samples` are their own source) or from a disk."""

    @property
    def y(self) -> Tensor:
        """Return the labels of all rows."""
        ...

    def __len__(self) -> int: ...
    def __getitem__(self, rows: Tensor) -> Samples: ...


@dataclass(frozen=True)
class Subset:
    """Give some rows of a source without copying them."""

    source: Source
    rows: Tensor

    @property
    def y(self) -> Tensor:
        return self.source.y[self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Tensor) -> Samples:
        return self.source[self.rows[rows]]


def in_memory(source: Source) -> bool:
    """Return whether a source holds all of its images in memory, itself or by the sources that it is made of."""
    if isinstance(source, Samples):
        return True
    fields: tuple[dataclasses.Field[Any], ...] = ()
    if dataclasses.is_dataclass(source):
        fields = dataclasses.fields(source)
    parts = [part for field in fields if is_source(part := getattr(source, field.name))]
    return bool(parts) and all(map(in_memory, parts))


def is_source(part: Any) -> TypeGuard[Source]:
    """Return whether something gives samples by row."""
    return hasattr(part, "y") and hasattr(part, "__getitem__")


class Batch(NamedTuple):
    """Hold the samples of one step of a stream.

    Args:
        x: The images (B, channels, height, width).
        y: Their labels (B).
        task: The number of the task, from 0.
        shortcut: B, height, width: the pixels of the shortcut; None where the stream does not know it.
    """

    x: Tensor
    y: Tensor
    task: int
    shortcut: Tensor | None


class Position(NamedTuple):
    """Say which batch of a stream comes next."""

    task: int = 0
    batch: int = 0
