"""Data sets of torch as sources of samples: whatever has a length and items (image, label), and pairs of arrays.

Images are pictures of Pillow, arrays (height, width, channels) or tensors (channels, height, width), and are read when
they are asked for. Labels are known before: from `targets`, as torchvision calls them, else every item is read once.
A data set that lists image files, as torchvision's `ImageFolder` does, is read through the cache of decoded images.
"""

import os
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import ConcatDataset, Subset

from droptop.data.image_cache import Room, load_images
from droptop.data.image_decoding import as_seen, fit
from droptop.data.image_folders import ImageFolder
from droptop.data.scenes import plain
from droptop.errors import BadRequest
from droptop.groups import Groups
from droptop.types import Samples, Source

Label = int | str
LOADERS = ("default_loader", "pil_loader")  # torchvision's, which open image files
ARRAYS = (Tensor, np.ndarray)

# -- Labels -----------------------------------------------------------------------------------------------------------


def labels_of(data: Any, what: str) -> list[Label]:
    """Return the labels of a data set or a pair of arrays; refuse anything else, and one without images."""
    if is_pair(data):
        images, labels = data
        if len(images) != len(labels):
            raise BadRequest(f"{what} has {len(images)} images and {len(labels)} labels")
        listed = [plain_label(label, row, what) for row, label in enumerate(labels)]
    elif hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        listed = listed_labels(data, what)
    else:
        raise BadRequest(
            f"{what} takes a data set with a length and items (image, label), or a pair of arrays, not "
            f"{type(data).__name__}; droptop.learn takes batches as they come"
        )
    if not listed:
        raise BadRequest(f"{what} has no images")
    return listed


def is_pair(data: Any) -> bool:
    """Return whether data is a pair of arrays: images, and their labels as an array or a list."""
    return isinstance(data, tuple | list) and len(data) == 2 and isinstance(data[0], ARRAYS)


def listed_labels(dataset: Any, what: str) -> list[Label]:
    """Return the labels of a data set: those that it lists, else those of its items, which are all read."""
    if isinstance(dataset, Subset):
        labels = listed_labels(dataset.dataset, what)
        return [labels[row] for row in dataset.indices]
    if isinstance(dataset, ConcatDataset):
        return [label for part in dataset.datasets for label in listed_labels(part, what)]
    listed = getattr(dataset, "targets", None)
    if listed is None or len(listed) != len(dataset) or getattr(dataset, "target_transform", None) is not None:
        listed = [item(dataset, row, what)[1] for row in range(len(dataset))]
    return [plain_label(label, row, what) for row, label in enumerate(listed)]


def plain_label(label: Any, row: int, what: str) -> Label:
    """Return a label as an integer or a text of Python; refuse anything else."""
    if (isinstance(label, Tensor) and label.numel() == 1) or isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, Integral):
        return int(label)
    if isinstance(label, str) and label:
        return label
    raise BadRequest(f"{what}, item {row}: a label is an integer or a text, not {label!r:.50}")


def classes_of(labels: Sequence[Label], named: Sequence[str] | None, listed: Any) -> dict[Label, str]:
    """Return the classes in their order: the label of each, and its name.

    Names are those a user gives (`named`), else those the data set lists. They name the labels 0, 1, ..., unless labels
    are texts. Without names, or where the listed ones fit no label, classes are the labels that there are.
    """
    there = sorted(set(labels), key=lambda label: (isinstance(label, str), label))
    fits = isinstance(listed, list | tuple) and all(isinstance(name, str) for name in listed)
    names = list(named) if named is not None else list(listed) if fits else []
    known: dict[Label, str] = {}
    if names:
        known = dict(zip(names if isinstance(there[0], str) else range(len(names)), names))
        if unknown := [label for label in there if label not in known]:
            if named is not None:
                raise BadRequest(f"classes names {', '.join(names)}, and there are images of class {unknown[0]}")
            known = {}
    return known or {label: str(label) for label in there}


# -- Images -----------------------------------------------------------------------------------------------------------


def source_of(
    data: Any, labels: Sequence[Label], y: Tensor, groups: dict[str, Groups], size: int, room: Room, what: str
) -> Source:
    """Return the samples of a data set or a pair of arrays; `size` is for pictures, in pixels per side."""
    if is_pair(data):
        return Samples(stacked(data[0], what), y, groups=groups)
    if (files := listed_files(data)) is not None:
        home = Path(os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in files]))
        names = tuple(os.path.relpath(path, home) for path in files)
        return load_images(plain(ImageFolder(home, (), names, tuple(y.tolist())), size, what), y, room, groups)
    return DatasetImages(data, labels, y, groups, size, what)


def listed_files(dataset: Any) -> list[str] | None:
    """Return the image files of a data set that shows them as they are; None for any other."""
    if isinstance(dataset, Subset):
        files = listed_files(dataset.dataset)
        return None if files is None else [files[row] for row in dataset.indices]
    changed = any(getattr(dataset, name, None) is not None for name in ("transform", "target_transform"))
    if changed or getattr(getattr(dataset, "loader", None), "__name__", None) not in LOADERS:
        return None
    return [os.fspath(path) for path, _ in dataset.samples]


class DatasetImages:
    """Read samples of a data set by row, each when it is asked for.

    Args:
        dataset: The data set.
        labels: Its labels as it gives them.
        y: The same as numbers of classes (N).
        groups: Groups of the samples by column.
        size: Pixels per side that pictures are brought to.
        what: The name of the part, for messages.
    """

    def __init__(
        self, dataset: Any, labels: Sequence[Label], y: Tensor, groups: dict[str, Groups], size: int, what: str
    ) -> None:
        self.groups = groups
        self.dataset, self.labels, self.y, self.size, self.what = dataset, labels, y, size, what
        self.first: Tensor | None = None
        self.first = self.image(0)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: Tensor) -> Samples:
        """Read some rows; raise BadRequest for an item that is not like the first, or whose label has changed."""
        groups = {name: of[rows] for name, of in self.groups.items()}
        return Samples(torch.stack([self.image(row) for row in rows.tolist()]), self.y[rows], groups=groups)

    def image(self, row: int) -> Tensor:
        """Return an image as a tensor (channels, height, width)."""
        image, label = item(self.dataset, row, self.what)
        now = plain_label(label, row, self.what)
        if now != self.labels[row]:
            raise BadRequest(f"{self.what}, item {row}: its label is {now} now, and was {self.labels[row]} before")
        made, first = as_tensor(image, self.size, f"{self.what}, item {row}"), self.first
        if first is not None and (made.shape, made.dtype) != (first.shape, first.dtype):
            raise BadRequest(
                f"{self.what}, item {row}: an image {tuple(made.shape)} of {made.dtype}, where the first is "
                f"{tuple(first.shape)} of {first.dtype}: a transform can bring all to one shape"
            )
        return made


def item(dataset: Any, row: int, what: str) -> tuple[Any, Any]:
    """Return an image and its label; refuse an item that is no such pair, or cannot be read."""
    try:
        pair = dataset[row]
    except Exception as error:  # of the user's code, or the files that it opens
        raise BadRequest(f"{what}, item {row}, cannot be read: {type(error).__name__}: {error}") from error
    if isinstance(pair, Mapping) or not isinstance(pair, Sequence) or len(pair) < 2:
        raise BadRequest(f"{what}, item {row}: items are pairs (image, label), not a {type(pair).__name__}")
    return pair[0], pair[1]


def as_tensor(image: Any, size: int, what: str) -> Tensor:
    """Return an image as a tensor (channels, height, width), bytes or float32; pictures at `size` pixels per side."""
    if isinstance(image, Image.Image):
        try:
            return torch.from_numpy(np.array(fit(as_seen(image), (size, size)))).permute(2, 0, 1)
        except OSError as error:  # it may be read from its file only now
            raise BadRequest(f"{what} does not decode: {error}") from None
    if not isinstance(image, ARRAYS) or image.ndim not in (2, 3):
        shape = f" of shape {tuple(image.shape)}" if isinstance(image, ARRAYS) else ""
        raise BadRequest(
            f"{what}: an image is a picture of Pillow, an array (height, width, channels) or a tensor "
            f"(channels, height, width), not {type(image).__name__}{shape}"
        )
    return stacked(image[None], what)[0]


def stacked(images: Any, what: str) -> Tensor:
    """Return images of an array (N, h, w, c), a tensor (N, c, h, w), or of either (N, h, w), as (N, c, h, w).

    Whole numbers from 0 to 255 become bytes, other numbers float32. An array may have its channels first, too, where
    these are 1 or 3 and its last axis is not.
    """
    x = torch.from_numpy(np.ascontiguousarray(images)) if isinstance(images, np.ndarray) else images
    if x.ndim == 3:
        x = x[:, None]
    elif x.ndim != 4:
        raise BadRequest(f"{what}: images are (N, channels, height, width), not {tuple(x.shape)}")
    elif isinstance(images, np.ndarray) and not (x.shape[1] in (1, 3) and x.shape[3] not in (1, 3)):
        x = x.permute(0, 3, 1, 2).contiguous()
    if x.is_floating_point():
        return x.float()
    if x.dtype == torch.bool or (x.numel() and not 0 <= int(x.min()) <= int(x.max()) <= 255):
        raise BadRequest(
            f"{what}: images are whole numbers from 0 to 255, or floating point, not {x.dtype} beyond these"
        )
    return x.to(torch.uint8)
