"""A stream of what a user has in Python: `stream_from` takes data sets of torch, and arrays."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from droptop.data.datasets import Label, classes_of, labels_of, source_of
from droptop.data.image_cache import Room
from droptop.data.image_folders import HELD_OUT
from droptop.errors import BadBatch, BadRequest, meant
from droptop.groups import Groups, groups_by_column
from droptop.options import replaced
from droptop.streams.folder import MEAN, STD
from droptop.streams.order import held_out
from droptop.streams.stream import Stream, StreamConfig
from droptop.types import Samples, Source, Spec, Subset

Numbers = float | tuple[float, ...]
TRAINING = "training images"


def stream_from(
    train: Any,
    tests: Any = None,
    *,
    tasks: int | Sequence[Sequence[Label]] = 0,
    groups: Any = None,
    classes: Sequence[str] | None = None,
    name: str = "your own",
    seed: int = 0,
    limit: int | None = None,
    image_size: int = 64,
    in_memory_mb: int = 1024,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    **options: Any,
) -> Stream:
    """Return a stream of your own data: `stream_from(dataset, other_dataset, tasks=5)`.

    Args:
        train: The training images: a map-style data set of torch with items (image, label), read when they are learned
            from, or a pair of arrays, images and labels. An image is Pillow's, a tensor (channels, height, width) or
            an array (height, width, channels), all of one shape unless they are Pillow's; a label is an integer or a
            text.
        tests: A test set of either kind, or several by name; None to hold out a fifth of each class.
        tasks: Tasks the classes are split into, evenly, 0 for two classes per task; or the classes of each task.
        groups: Groups of the test images, as `Samples` take them; by name, where test sets have names. Without test
            sets, those of the training images, of which the ones that are held out keep theirs.
        classes: The names of the classes 0, 1, ...; by default `train.classes`, else the labels.
        name: The name of the stream, for messages.
        seed: Decides the order of samples.
        limit: At most so many samples per task; None for all.
        image_size: Pixels per side that Pillow's images are scaled and cropped to.
        in_memory_mb: MiB of decoded images to hold in memory, where a data set lists its image files.
        mean: What is subtracted from pixels, as `Spec` takes it; by default ImageNet's for bytes in colour, else 0.
        std: What they are then divided by; by default ImageNet's for bytes in colour, else 1.
        **options: Other options that every stream has, such as `batch` or `blurry`.

    Returns:
        The stream, with its test sets.

    Raises:
        BadRequest: The data or options do not make a stream; or, while it is read, an item cannot be read.
    """
    parts = {TRAINING: train} | {f"test set {test}": data for test, data in named_tests(tests).items()}
    labels = {part: labels_of(data, part) for part, data in parts.items()}
    known = classes_of(labels[TRAINING], classes, getattr(train, "classes", None))
    if len(set(labels[TRAINING])) < 2:
        raise BadRequest(f"{name} has training images of one class, {labels[TRAINING][0]}: a stream has two at least")
    room, grouped = (
        Room(in_memory_mb * 2**20),
        groups_by_part(groups, tests, {part: len(labels[part]) for part in parts}),
    )
    sources = {
        part: source_of(
            data, labels[part], numbers_of(labels[part], known, part), grouped[part], image_size, room, part
        )
        for part, data in parts.items()
    }
    spec = spec_of(sources, tuple(known.values()), mean, std)
    config = config_of(options | tasks_of(tasks, spec.classes, list(known)))
    images = sources.pop(TRAINING)
    made = {part.removeprefix("test set "): source for part, source in sources.items()}
    if not made:
        images, made["test"] = without_held_out(images, spec.classes)
    return Stream(name, spec, images, made, config, seed, limit)


def named_tests(tests: Any) -> dict[str, Any]:
    """Return test sets by name, one alone by the name test; none for None."""
    if tests is None:
        return {}
    if isinstance(tests, Mapping):
        if not tests or not all(isinstance(name, str) and name for name in tests):
            raise BadRequest("tests takes a data set, or one or more by name")
        return dict(tests)
    return {"test": tests}


def groups_by_part(groups: Any, tests: Any, sizes: Mapping[str, int]) -> dict[str, dict[str, Groups]]:
    """Return the groups of every part by column; refuse those of a test set that is not there, or of another length."""
    given = {TRAINING: groups} if tests is None else {"test set test": groups}
    if isinstance(tests, Mapping):
        if groups is not None and (not isinstance(groups, Mapping) or groups.keys() - tests.keys()):
            raise BadRequest(f"groups are by the name of a test set: {', '.join(tests)}")
        given = {f"test set {test}": of for test, of in (groups or {}).items()}
    try:
        return {part: groups_by_column(given.get(part), size, torch.device("cpu")) for part, size in sizes.items()}
    except BadBatch as error:
        raise BadRequest(str(error)) from None


def numbers_of(labels: Sequence[Label], known: Mapping[Label, str], part: str) -> Tensor:
    """Return labels as numbers of classes (N); refuse one of a class that is not known."""
    number = {label: place for place, label in enumerate(known)}
    for row, label in enumerate(labels):
        if label not in number:
            raise BadRequest(f"{part}, item {row}: there are no training images of class {label}")
    return torch.tensor([number[label] for label in labels])


def spec_of(sources: Mapping[str, Source], classes: tuple[str, ...], mean: Numbers | None, std: Numbers | None) -> Spec:
    """Return what the images are like; refuse test sets with images of another shape or type."""
    first, *others = ((part, source[torch.tensor([0])].x[0]) for part, source in sources.items())
    image = first[1]
    for part, other in others:
        if (other.shape, other.dtype) != (image.shape, image.dtype):
            raise BadRequest(
                f"images of {part} are {tuple(other.shape)} of {other.dtype}, {first[0]} {tuple(image.shape)} of "
                f"{image.dtype}"
            )
    channels, height, width = image.shape
    usual: tuple[Numbers, Numbers] = (MEAN, STD) if image.dtype == torch.uint8 and channels == 3 else (0.0, 1.0)
    return Spec(
        (channels, height, width),
        classes,
        image.dtype,
        usual[0] if mean is None else mean,
        usual[1] if std is None else std,
    )


def tasks_of(tasks: int | Sequence[Sequence[Label]], names: tuple[str, ...], labels: list[Label]) -> dict[str, Any]:
    """Return the options for a number of tasks or for the classes of each task, by name or label."""
    if isinstance(tasks, int):
        return {"tasks": tasks}
    place: dict[Label, int] = {name: number for number, name in enumerate(names)}
    place |= {label: number for number, label in enumerate(labels)}
    if isinstance(tasks, str) or any(isinstance(task, int | str) for task in tasks):
        raise BadRequest(f"tasks takes a number, or a list of classes per task, not {tasks!r}")
    for label in (label for task in tasks for label in task):
        if label not in place:
            raise BadRequest(f"tasks has {label!r}, and the classes are {', '.join(names)}{meant(str(label), names)}")
    digits = any(name.isdigit() for name in names)  # `split` then takes a number as a name
    texts = [[names[place[label]] if digits else str(place[label]) for label in task] for task in tasks]
    return {"split": "/".join(map(",".join, texts))}


def config_of(options: Mapping[str, Any]) -> StreamConfig:
    """Return the options of a stream; refuse unknown ones."""
    known = [field.name for field in dataclasses.fields(StreamConfig)]
    for name in options:
        if name not in known:
            raise BadRequest(f"a stream has no option {name}; it has {', '.join(known)}{meant(name, known)}")
    config: StreamConfig = replaced(StreamConfig(), dict(options))
    return config


def without_held_out(images: Source, classes: tuple[str, ...]) -> tuple[Source, Source]:
    """Return training images without a fifth of each class, and that fifth; refuse a class of one image."""
    counts = images.y.bincount(minlength=len(classes)).tolist()
    if 1 in counts:
        raise BadRequest(
            f"class {classes[counts.index(1)]} has one image, and there are no tests: none can be held out"
        )
    held = held_out(images.y, 100 * HELD_OUT)
    rest, test = (
        images[mask.nonzero()[:, 0]] if isinstance(images, Samples) else Subset(images, mask.nonzero()[:, 0])
        for mask in (~held, held)
    )
    return rest, test
