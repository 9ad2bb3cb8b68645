"""The images and labels of a data set that `hub` has opened: columns by their types and usual names, or named.

Images are the library's type of images, or bytes of image files. Labels are its type of classes, or integers or texts.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import torch
from PIL import Image
from torch import Tensor

from droptop.data import columns
from droptop.data.checks import AT_LEAST, check_rows
from droptop.data.columns import Columns
from droptop.data.group_table import note_unseen
from droptop.data.hub import imported, in_cache, open_data, quiet
from droptop.data.image_cache import ImageSet, silent
from droptop.data.image_decoding import as_seen, opened, read_image
from droptop.data.image_folders import fifth
from droptop.data.root import FileProgress, Missing
from droptop.errors import BadRequest, all_refusals
from droptop.escapes import visible
from droptop.groups import Groups, coded


@dataclass(frozen=True)
class HubPart:
    """Hold the images and labels of a part: a split, or some rows of one."""

    what: str  # for messages
    split: Any  # of the library, with the column of images alone, not decoded
    classes: tuple[str, ...]
    rows: Sequence[int]  # of the split
    labels: tuple[int, ...]  # of these rows
    groups: Mapping[str, Sequence[str]]  # of these rows, by column

    @property
    def y(self) -> Tensor:
        """Return the labels of all rows."""
        return torch.tensor(self.labels)

    def select(self, places: Sequence[int]) -> "HubPart":
        """Return a part of it."""
        labels = tuple(self.labels[place] for place in places)
        groups = {name: [values[place] for place in places] for name, values in self.groups.items()}
        return replace(self, rows=[self.rows[place] for place in places], labels=labels, groups=groups)

    @property
    def coded(self) -> dict[str, Groups]:
        """Return the groups of all rows by column, those of which every row has one."""
        known = {name: values for name, values in self.groups.items() if "" not in values}
        return {name: coded(name, values, torch.device("cpu")) for name, values in known.items()}

    def image_set(self, size: int) -> ImageSet:
        """Return how to make the images at `size` pixels per side."""
        home = Path(self.split.cache_files[0]["filename"]).absolute().parent
        files = [file["filename"] for file in self.split.cache_files] + self.image_files
        names = [os.path.relpath(file, home) for file in files]
        return ImageSet(
            self.what,
            f"hub {self.split.column_names[0]}",
            size,
            home,
            names,
            self.rows,
            lambda row: self.image(row, size),
        )

    @property
    def image_files(self) -> list[str]:
        """Return the image files that the split names, where it does not hold their bytes."""
        (first,) = self.split[0].values()
        if first is None or first["bytes"] is not None:
            return []
        return [value["path"] for value in self.split[self.split.column_names[0]] if value is not None]

    def image(self, row: int, at_least: int | None = None) -> Image.Image:
        """Return an image by its row in the split, smaller if `at_least` allows it; refuse one that does not decode."""
        (value,) = self.split[row].values()
        if value is None:
            raise BadRequest(f"{self.what}, row {row}, has no image")
        if value["bytes"] is None:
            return read_image(Path(value["path"]), at_least)
        with opened(BytesIO(value["bytes"]), f"{self.what}, row {row},") as image:
            return as_seen(image, at_least)

    def size(self, row: int) -> tuple[int, int]:
        """Return the width and height of an image by its row in the split; refuse one that does not decode."""
        return self.image(row, AT_LEAST).size


class HubImages(NamedTuple):
    """Hold training images and test sets, by name."""

    train: HubPart
    tests: dict[str, HubPart]

    @property
    def everything(self) -> dict[str, HubPart]:
        """Return all parts by name."""
        return {"training": self.train} | self.tests


def read_hub(name: str, wanted: Columns = Columns()) -> HubImages:
    """Return the images of a data set by name; refuse one whose columns, splits or labels do not make a stream."""
    splits, place = open_data(name, wanted.revision).splits, f"hf:{name}"
    chosen = columns.splits_of(list(splits), wanted.train, wanted.tests, place)
    features = splits[chosen.train].features
    image, label = image_column(features, wanted.image, place), label_column(features, wanted.label, place)
    labels: dict[str, list[str]] = {}
    grouped = columns.group_columns(wanted.groups, features, (image, label), place)
    for split in (chosen.train, *chosen.tests.values()):
        used = {image, label, *(part for name in grouped for part in name.split(columns.CROSS))}
        if lacking := used - set(splits[split].column_names):
            raise BadRequest(f"{place}, {split}: there is no column {min(lacking)}, which {chosen.train} has")
        labels[split] = labels_of(splits[split], label, f"{place}, {split}")
    classes = classes_of(features[label], labels[chosen.train])
    if len(classes) < 2:
        raise BadRequest(f"{place} has training images of one class, {classes[0]}: a stream has two at least")
    number = {name: label for label, name in enumerate(classes)}

    def part(split: str) -> HubPart:
        for row, name in enumerate(labels[split]):
            if name not in number:
                raise BadRequest(f"{place}, {split}, row {row}: there are no training images of class {name}")
        numbers = tuple(number[name] for name in labels[split])

        def cells(column: str) -> list[str]:
            return names_in(splits[split], column, f"{place}, {split}", split in tested)

        groups = {name: columns.crossed(name, cells) for name in grouped}
        images = images_alone(splits[split], image)
        return HubPart(f"{place}, {split}", images, classes, range(len(numbers)), numbers, groups)

    tested = set(chosen.tests.values())
    train, tests = part(chosen.train), {test: part(split) for test, split in chosen.tests.items()}
    images = HubImages(train, tests) if tests else hold_out(train)
    for name in images.train.coded:
        seen = {group for part in images.tests.values() for group in part.groups[name]}
        note_unseen(name, set(images.train.groups[name]), seen, place)
    return images


def hold_out(part: HubPart) -> HubImages:
    """Split a part in training and test images, a fifth of each class for testing, the same for every seed."""
    held: set[int] = set()
    for label, name in enumerate(part.classes):
        rows = [row for row, own in enumerate(part.labels) if own == label]
        if len(rows) == 1:
            raise BadRequest(
                f"{part.what}: class {name} has one image, and there is no test split: none can be held out"
            )
        held |= set(fifth(rows, str))
    rest = [row for row in range(len(part.labels)) if row not in held]
    return HubImages(part.select(rest), {"test": part.select(sorted(held))})


# -- Columns ----------------------------------------------------------------------------------------------------------


def image_column(features: Mapping[str, Any], named: str | None, place: str) -> str:
    """Return the column of images; refuse data without one, and with several of which none has a usual name."""
    import datasets

    def holds_images(kind: Any) -> bool:  # or the bytes of files, which other programs write
        stored = isinstance(kind, datasets.Value) and kind.dtype in ("binary", "large_binary")
        return (
            isinstance(kind, datasets.Image) or stored or (isinstance(kind, dict) and kind.keys() == {"bytes", "path"})
        )

    there = [name for name, kind in features.items() if holds_images(kind)]
    if not there:
        raise BadRequest(f"{place} has no column of images: it has {kinds(features)}")
    if named is not None and named in features and named not in there:
        raise BadRequest(f"--image-column takes a column of images, as {', '.join(there)}; {named} is none")
    if len(there) == 1 and named is None:
        return there[0]
    return columns.needed("image", named, (*columns.PATHS, "photo"), there, place)


def label_column(features: Mapping[str, Any], named: str | None, place: str) -> str:
    """Return the column of labels: with a usual name, else the only one of classes; refuse data without one."""
    import datasets

    classes = [name for name, kind in features.items() if isinstance(kind, datasets.ClassLabel)]
    plain = [name for name, kind in features.items() if isinstance(kind, datasets.Value) and is_plain(kind.dtype)]
    if named is not None and named in features and named not in classes + plain:
        raise BadRequest(f"--label-column takes a column of integers, texts or classes; {named} is {features[named]}")
    usual = columns.column("label", named, columns.LABELS, features if named else classes + plain, place)
    if usual is None and len(classes) == 1:
        return classes[0]
    if not classes + plain:
        raise BadRequest(f"{place} has no column of labels (integers, texts or classes): it has {kinds(features)}")
    return usual or columns.needed("label", None, columns.LABELS, classes + plain, place)


def is_plain(dtype: str) -> bool:
    """Return whether values of this type can be labels."""
    return dtype.startswith(("int", "uint")) or dtype in ("bool", "string", "large_string")


def kinds(features: Mapping[str, Any]) -> str:
    """Return the columns with their types, for messages."""
    return ", ".join(
        f"{name} ({getattr(kind, 'dtype', None) or type(kind).__name__})" for name, kind in features.items()
    )


def images_alone(split: Any, column: str) -> Any:
    """Return a split with its column of images alone, as bytes."""
    import datasets

    return split.select_columns([column]).cast_column(column, datasets.Image(decode=False))


def labels_of(split: Any, column: str, what: str) -> list[str]:
    """Return the names of the labels of a split; refuse a split without rows, and rows without a label."""
    if not len(split):
        raise BadRequest(f"{what} has no rows")
    return names_in(split, column, what, needed=True)


def names_in(split: Any, column: str, what: str, needed: bool) -> list[str]:
    """Return the names in a column of classes, numbers or texts, empty where there is none; refuse that if `needed`."""
    names, named = getattr(split.features[column], "names", None), list[str]()
    for row, value in enumerate(split[column]):
        nothing = value is None or value == "" or (names is not None and not 0 <= value < len(names))
        if nothing and needed:
            raise BadRequest(f"{what}, row {row}: column {column} has {value!r}, and not a name")
        named.append("" if nothing else str(value) if names is None else names[value])
    return named


def classes_of(kind: Any, labels: Sequence[str]) -> tuple[str, ...]:
    """Return the classes that there are, in the order of the data set or, where it has none, by number or as text."""
    names = getattr(kind, "names", None)
    there = set(labels)
    return columns.classes_of(labels) if names is None else tuple(name for name in names if name in there)


# -- Commands ---------------------------------------------------------------------------------------------------------


def where(name: str) -> str:
    """Return the name and how many images there are; read none of them."""
    parts = read_hub(name).everything
    counts = " + ".join(f"{len(part.labels):,}" for part in parts.values())
    return f"hf:{name}, {counts} images of {len(parts['training'].classes)} classes"


def where_cached(stream: str, name: str) -> str:
    """Return the name of a repository that a stream reads; raise `Missing` where the library's cache lacks it."""
    how = f"the first run fetches {name} from the hub, by pip install 'droptop[hub]'"
    try:
        with quiet(imported(name)):
            if in_cache(name, None, None) is not None:
                return f"hf:{name}, in the cache"
    except BadRequest as error:
        raise Missing(stream, Path(name), how) from error
    raise Missing(stream, Path(name), how)


def check(name: str, progress: FileProgress = silent, wanted: Columns = Columns()) -> str:
    """Read every image and return a line per part; refuse the data set with every image that does not decode."""
    lines = []
    with all_refusals() as trying:
        for what, part in read_hub(name, wanted).everything.items():
            with trying():
                check_rows(part.size, part.rows, what, progress)
                counts = part.y.bincount(minlength=len(part.classes)).tolist()
                listed = ", ".join(f"{name} {count}" for name, count in zip(part.classes, counts))
                lines.append(visible(f"{what}: {len(part.rows)} images decode ({listed})"))
    return "\n".join(lines)


def version(name: str, wanted: Columns = Columns()) -> str | None:
    """Return the commit of a repository or a hash of a folder's files, by which a run knows them; None without them."""
    try:
        return open_data(name, wanted.revision).version
    except BadRequest:
        return None
