"""Streams of images that a list names: `csv:FILE`, and published data sets in their own layouts."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path

from droptop.data.columns import Columns
from droptop.data.csv_images import read_csv
from droptop.data.image_cache import load_images, read_once
from droptop.data.listed import TRAIN, ListedImages
from droptop.data.published import Published
from droptop.data.scenes import plain
from droptop.streams.folder import MEAN, STD, FolderConfig, ImageConfig
from droptop.streams.stream import Stream
from droptop.types import Source, Spec


@dataclass(frozen=True)
class TableConfig(FolderConfig):
    """Hold the options of a stream whose images are the rows of a table."""

    image_column: str | None = None
    """Column of the images; by default one with a usual name, such as path or image."""
    label_column: str | None = None
    """Column of the labels, which are numbers or texts; by default label, class, target or y."""
    train_split: str | None = None
    """Split to train on; by default train."""
    test_splits: str | None = None
    """Splits to test on, separated by commas; by default test, else val, and those whose names begin with test-."""
    group_columns: str | None = None
    """Columns of groups, separated by commas; by default group, place, background and environment. Two columns joined
    by * are taken together, such as label*place."""

    @property
    def columns(self) -> Columns:
        """Return which columns and splits to take."""
        names = (self.image_column, self.label_column, None, self.train_split, self.test_splits)
        return Columns(*names, groups=self.group_columns)


@dataclass(frozen=True)
class CsvConfig(TableConfig):
    """Hold the options of `csv:FILE`."""

    split_column: str | None = None
    """Column that says which rows are for training and which for testing; by default split, partition or set."""
    image_folder: str | None = None
    """Folder that paths are relative to, as seen from that of the file; by default that folder."""

    @property
    def columns(self) -> Columns:
        """Return which columns and splits to take."""
        return super().columns._replace(split=self.split_column, folder=self.image_folder)


@dataclass(frozen=True)
class PublishedConfig(FolderConfig):
    """Hold the options of a published data set."""

    image_size: int = 224
    """Pixels per side: images are scaled until their shorter side fits, then cropped to their centre."""


def csv_file(path: str, config: CsvConfig, seed: int, limit: int | None = None, root: Path | None = None) -> Stream:
    """Return the stream of the images that a CSV file lists."""
    return listed(f"csv:{path}", lambda: read_csv(path, config.columns), config.columns, config, seed, limit)


def published(
    files: Published, config: PublishedConfig, seed: int, limit: int | None = None, root: Path | None = None
) -> Stream:
    """Return the stream of a published data set."""
    return listed(files.name, lambda: files.read(root), root, config, seed, limit)


def listed(
    name: str, images: Callable[[], ListedImages], which: Hashable, config: ImageConfig, seed: int, limit: int | None
) -> Stream:
    """Return the stream of listed images; `which` is what they depend on besides the name."""
    size, room = config.image_size, config.room

    def sources() -> tuple[Spec, Source, dict[str, Source]]:
        train, tests, groups = images()
        spec = Spec((3, size, size), train.classes, mean=MEAN, std=STD)
        of_training = groups[TRAIN] if config.hold_out else None
        first = load_images(plain(train, size, f"{name}, training"), train.y, room, of_training)
        made = {
            test: load_images(plain(part, size, f"{name}, {test}"), part.y, room, groups[test])
            for test, part in tests.items()
        }
        return spec, first, made

    key = (name, which, size, config.in_memory_mb, config.hold_out > 0)
    spec, train, tests = read_once(key, sources)
    return Stream(name, spec, train, tests, config, seed, limit)
