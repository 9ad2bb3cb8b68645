"""The types that travel through every room: what images are like, images with labels, batches, rows of columns."""

import dataclasses
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple, Protocol, TypeGuard

import torch
from torch import Tensor

from droptop import array_checks
from droptop.errors import BadBatch, BadRequest
from droptop.groups import Groups, groups_by_column

Rows = dict[str, Tensor]  # columns by name, one row per sample
Tasks = tuple[tuple[int, ...], ...]  # classes of each task


def split_rows(rows: Mapping[str, Tensor], sizes: int | list[int]) -> list[Rows]:
    """Cut rows into parts, as `Tensor.split` cuts a tensor."""
    columns = {name: column.split(sizes) for name, column in rows.items()}
    return [dict(zip(columns, parts)) for parts in zip(*columns.values())]


def images_text(x: Tensor) -> str:
    """Return how many images of which size and type a tensor (N, c, h, w) has, in words."""
    return f"{len(x):,} images of {sizes_text(x.shape[1:])}, {str(x.dtype).removeprefix('torch.')}"


def sizes_text(sizes: Iterable[int]) -> str:
    """Return sizes in words, such as 3 x 32 x 32."""
    return " x ".join(map(str, sizes))


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
        listed = () if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
        if not listed or len(set(listed)) < len(listed) or not all(isinstance(name, str) for name in listed):
            raise BadRequest(f"classes must be one name or more, each another, not {names!r}")
        object.__setattr__(self, "classes", tuple(map(str, listed)))
        sides = tuple(self.shape) if isinstance(self.shape, Iterable) else ()
        if len(sides) != 3 or not all(isinstance(side, Integral) and side >= 1 for side in sides):
            raise BadRequest(f"shape must be channels, height and width, not {self.shape}")
        object.__setattr__(self, "shape", tuple(map(int, sides)))
        if not isinstance(self.dtype, torch.dtype) or not (self.dtype == torch.uint8 or self.dtype.is_floating_point):
            raise BadRequest(f"dtype must be torch.uint8 or floating point, not {self.dtype}")
        for name, least in (("mean", -math.inf), ("std", 0)):
            value = getattr(self, name)
            numbers = numbers_of(value)
            if len(numbers) not in (1, self.shape[0]) or not all(least < number < math.inf for number in numbers):
                above = " above 0" if name == "std" else ""
                raise BadRequest(f"{name} must be one number{above}, or one per channel, not {value}")
            if not isinstance(value, tuple | float | int):  # a list or an array
                object.__setattr__(self, name, numbers if len(numbers) > 1 else numbers[0])
        if self.shape[2] in (1, 3) and self.shape[0] > 4:
            warnings.warn(
                f"shape is channels, height and width: {self.shape} are images of {self.shape[0]} channels",
                stacklevel=3,
            )


def numbers_of(value: Any) -> tuple[float, ...]:
    """Return one number or several as a tuple; an empty one for anything else."""
    if hasattr(value, "tolist"):  # of an array
        value = value.tolist()
    listed = tuple(value) if isinstance(value, tuple | list) else (value,)
    return tuple(map(float, listed)) if all(isinstance(number, Real) for number in listed) else ()


@dataclass(frozen=True, repr=False)
class Samples:
    """Hold images with their labels and, where the stream knows its shortcut, the truth about the shortcut.

    Args:
        x: The images (N, channels, height, width), bytes or finite floating point.
        y: The labels (N), int64.
        follows: N: whether the shortcut of this sample points to its class; True and False, or 1 and 0.
        shortcut: N, height, width: the pixels of the shortcut, likewise.
        groups: Groups of the samples by the name of their column; or those of one column, which is then called group.
            A column is `Groups`, or N integers or texts.

    Raises:
        BadBatch: A part is no tensor, or has another type or shape, or other values, or they are on several devices.
    """

    x: Tensor
    y: Tensor
    follows: Tensor | None = None
    shortcut: Tensor | None = None
    groups: Any = None  # once made, by column: dict[str, Groups]

    def __post_init__(self) -> None:
        array_checks.check_images(self.x, on_gpu=True)
        array_checks.check_labels(self.y, len(self.x))
        count, (height, width) = len(self.x), self.x.shape[2:]
        for name, shape, means in (
            ("follows", (count,), "whether each sample's shortcut points to its class"),
            ("shortcut", (count, height, width), "whether a pixel of the image is the shortcut's"),
        ):
            if (values := getattr(self, name)) is not None:
                object.__setattr__(self, name, array_checks.truths(values, shape, name, means))
        groups = groups_by_column(self.groups, count, self.x.device)
        object.__setattr__(self, "groups", groups)
        columns = {name: column for name, column in vars(self).items() if isinstance(column, Tensor)}
        array_checks.check_devices(columns | {f"groups of {name}": of.codes for name, of in groups.items()})

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        """Return how many there are of what, in one line."""
        labels = f"labels {int(self.y.min())} to {int(self.y.max())}" if len(self.y) else "no labels"
        known = [name for name in ("follows", "shortcut") if getattr(self, name) is not None]
        return f"Samples({images_text(self.x)}, {', '.join([labels, *known])}, on {self.x.device})"

    def __getitem__(self, rows: Tensor) -> "Samples":
        """Return the samples of these rows, by their numbers or by True and False for each."""
        array_checks.check_rows(rows, len(self))
        return self.each(lambda column: column[rows])

    def each(self, change: Callable[[Tensor], Tensor]) -> "Samples":
        """Return samples with every column changed alike, such as moved to a device: they are not checked again."""
        columns = {name: change(column) for name, column in vars(self).items() if isinstance(column, Tensor)}
        return self.with_columns(columns, {name: of.at(change(of.codes)) for name, of in self.groups.items()})

    def with_columns(self, columns: Rows, groups: dict[str, Groups] | None = None) -> "Samples":
        """Return samples with these columns beside their others or in their place: they are not checked again."""
        samples = object.__new__(Samples)
        vars(samples).update(vars(self) | columns | ({} if groups is None else {"groups": groups}))
        return samples


class Source(Protocol):
    """Give samples by row, from memory (`Samples` are their own source) or from a disk.

    One that knows groups of its samples has an attribute `groups` besides, as `Samples` take it.
    """

    @property
    def y(self) -> Tensor:
        """Return the labels of all rows."""
        ...

    def __len__(self) -> int: ...
    def __getitem__(self, rows: Tensor) -> Samples: ...


def read(source: Source, rows: Tensor) -> Samples:
    """Return some rows of a source; raise BadBatch for one of a user's that gives something else for them."""
    samples = source[rows]
    if isinstance(source, Samples):
        return samples
    if not isinstance(samples, Samples):
        raise BadBatch(f"a source of samples gives droptop.Samples of the rows asked for, not {type(samples).__name__}")
    if len(samples) != len(rows):
        raise BadBatch(f"a source of samples was asked for {len(rows)} rows and gave {len(samples)}")
    on_host = samples.y.device.type == source.y.device.type == "cpu"
    if on_host and not torch.equal(samples.y, source.y[rows]):
        raise BadBatch("a source of samples gives other labels with its rows than its y has for them")
    return samples


def groups_of(source: Source) -> dict[str, Groups]:
    """Return the groups of all rows of a source by column; none for a source that knows none."""
    return groups_by_column(getattr(source, "groups", None), len(source), source.y.device)


def check_source(spec: Spec, source: Any, what: str) -> None:
    """Raise BadRequest unless a source has labels of the spec's classes and its first image fits the spec."""
    if not isinstance(getattr(source, "y", None), Tensor):
        raise BadRequest(f"{what} must be Samples of images and labels, not a {type(source).__name__}")
    try:
        array_checks.check_labels(source.y, len(source))
        groups_of(source)
        if len(source):
            first = read(source, torch.zeros(1, dtype=torch.int64, device=source.y.device))
            array_checks.check_images(first.x, spec.shape, spec.dtype, on_gpu=True)
    except BadBatch as error:
        raise BadRequest(f"{what}: {error}") from None
    last = len(spec.classes) - 1
    if len(source) and not 0 <= source.y.min() <= source.y.max() <= last:
        raise BadRequest(f"{what} must have labels from 0 to {last}, not {source.y.min()} to {source.y.max()}")


@dataclass(frozen=True, repr=False)
class Subset:
    """Give some rows of a source without copying them."""

    source: Source
    rows: Tensor

    @property
    def y(self) -> Tensor:
        return self.source.y[self.rows]

    @property
    def groups(self) -> dict[str, Groups]:
        """Return the groups of these rows by column."""
        return {name: of[self.rows] for name, of in groups_of(self.source).items()}

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Subset({len(self):,} of {self.source!r})"

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

    def __repr__(self) -> str:
        """Return how many samples of what it has, in one line."""
        known = "" if self.shortcut is None else ", with their shortcut"
        return f"Batch({images_text(self.x)}, task {self.task}{known})"


class Position(NamedTuple):
    """Say which batch of a stream comes next."""

    task: int = 0
    batch: int = 0
