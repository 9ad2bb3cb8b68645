"""Data sets of the Hugging Face hub and folders in its layout as streams, `hf:OWNER/NAME`. `data/hub.py` opens them."""

from dataclasses import dataclass
from pathlib import Path

from droptop.data.columns import Columns
from droptop.data.hub_images import read_hub
from droptop.data.image_cache import load_images, read_once
from droptop.streams.folder import MEAN, STD
from droptop.streams.listed import TableConfig
from droptop.streams.stream import Stream
from droptop.types import Source, Spec


@dataclass(frozen=True)
class HubConfig(TableConfig):
    """Hold the options of `hf:OWNER/NAME`."""

    revision: str | None = None
    """Commit, branch or tag of the repository; by default the newest that the cache has, else the newest of the hub."""

    @property
    def columns(self) -> Columns:
        """Return which columns and splits to take."""
        return super().columns._replace(revision=self.revision)


@dataclass(frozen=True)
class WaterbirdsConfig(HubConfig):
    """Hold the options of `waterbirds`."""

    image_size: int = 224
    """Pixels per side: images are scaled until their shorter side fits, then cropped to their centre."""
    test_splits: str | None = "test"
    """Splits to test on, separated by commas; there are test and validation."""
    group_columns: str | None = "place,label*place"
    """Columns of groups, separated by commas; two columns joined by * are taken together."""


def hub(name: str, config: HubConfig, seed: int, limit: int | None = None, root: Path | None = None) -> Stream:
    """Return the stream of a data set of the hub, or of a folder in its layout."""
    size, room = config.image_size, config.room

    def sources() -> tuple[Spec, Source, dict[str, Source]]:
        train, tests = read_hub(name, config.columns)
        spec = Spec((3, size, size), train.classes, mean=MEAN, std=STD)
        images = load_images(train.image_set(size), train.y, room, train.coded if config.hold_out else None)
        made = {test: load_images(part.image_set(size), part.y, room, part.coded) for test, part in tests.items()}
        return spec, images, made

    key = (name, config.columns, size, config.in_memory_mb, config.hold_out > 0)
    spec, images, tests = read_once(key, sources)
    return Stream(f"hf:{name}", spec, images, tests, config, seed, limit)
