"""ImageNet-9 (Xiao et al., the backgrounds challenge) in four tasks, as the paper splits it, without primates:

    (dog, bird), (vehicle, reptile), (carnivore, insect), (instrument, fish)

    ROOT/imagenet9/VARIANT/{train,val}/00_dog/...    VARIANT: original, only_fg, only_bg_t, ... as in TESTS
    ROOT/imagenet9/{masks,boxes.json}                optional, see `scenes`

The same folders are found in ROOT/imagenet9/bg_challenge, ROOT/bg_challenge and ROOT too, as people unpack the
archives; the challenge's own val folders, cleaned by hand, come first. A variant that has no folder is made from images
and masks where there are masks, backgrounds coming from all nine classes; one that cannot be had is left out of the
test sets. `split-imagenet9:only_fg` trains on a variant and tests on the same sets.

`split-tiny-imagenet9` is the same stream on ROOT/tiny-in9, whose images are 64 px a side: what is measured there says
nothing of ImageNet-9.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from droptop.errors import BadRequest, all_refusals
from droptop.streams import cache
from droptop.streams.cache import Recipe, opened, silent
from droptop.streams.checks import check_images, check_scenes
from droptop.streams.folder import MEAN, STD, ImageConfig
from droptop.streams.root import Missing, Progress, data_root
from droptop.streams.scenes import Scenes, plain, read_boxes
from droptop.streams.stream import Source, Spec, Stream
from droptop.streams.tree import Part, read_part
from droptop.streams.variants import VARIANTS

FOLDERS = (
    "00_dog",
    "01_bird",
    "02_vehicle",
    "03_reptile",
    "04_carnivore",
    "05_insect",
    "06_instrument",
    "07_primate",
    "08_fish",
)
LEFT_OUT = "07_primate"
TAUGHT = tuple(name for name in FOLDERS if name != LEFT_OUT)
TESTS = ("original", *VARIANTS, "stylized")


@dataclass(frozen=True)
class TinyImageNet9Config(ImageConfig):
    tasks: int = 4
    """Tasks the classes are split into, evenly."""


@dataclass(frozen=True)
class ImageNet9Config(TinyImageNet9Config):
    image_size: int = 224
    """Pixels a side: images are scaled until their shorter side fits, then cropped to their centre."""


@dataclass(frozen=True)
class Kind:
    """ImageNet-9, or a set laid out as it is."""

    name: str
    home: str  # where its folders belong, below the root
    homes: tuple[str, ...]  # where they may be, the better ones first
    smallest: int  # pixels a side that its images have at least
    how: str  # to get it

    def build(
        self, variant: str, config: ImageConfig, seed: int, limit: int | None = None, root: Path | None = None
    ) -> Stream:
        """The stream that trains on a variant."""
        name = self.name if variant == "original" else f"{self.name}:{variant}"
        images, tests = cache.once(
            (name, root, config.image_size, config.in_memory_mb), lambda: self.sources(name, variant, config, root)
        )
        spec = Spec(
            (3, config.image_size, config.image_size), tuple(folder[3:] for folder in TAUGHT), mean=MEAN, std=STD
        )
        return Stream(name, spec, images, tests, config, seed, limit)

    def sources(
        self, name: str, variant: str, config: ImageConfig, root: Path | None
    ) -> tuple[Source, dict[str, Source]]:
        """What to train on and what to test with."""
        size, room = config.image_size, config.room
        train = dict(self.sets(root, "train", [variant], size))
        tests = dict(self.sets(root, "val", TESTS, size))
        if variant not in train:
            raise BadRequest(
                f"{name} needs images to train on: a folder {variant}/train"
                + (" or masks/train" if variant in VARIANTS else "")
            )
        images = cache.source(*train[variant], room)
        return images, {test: cache.source(*made, room) for test, made in tests.items()}

    def sets(
        self, root: Path | None, part: str, names: Sequence[str], size: int
    ) -> Iterator[tuple[str, tuple[Recipe, Tensor]]]:
        """Those of the named variants that can be had."""
        scenes = None
        for name in names:
            what = f"{self.name}, {name} {part}"
            folder = self.find(root, name, part)
            if folder is not None:
                images = self.read(folder)
                rows, labels = taught(images)
                yield name, (plain(images.select(rows), size, what), labels)
            elif name in VARIANTS:
                if scenes is None and (scenes := self.scenes(root, part)) is not None:
                    self.check_size(scenes.complete().part)
                if scenes is not None:
                    rows, labels = taught(scenes.part)
                    yield name, (scenes.recipe(name, rows, size, what), labels)

    def find(self, root: Path | None, variant: str, part: str) -> Path | None:
        """The first folder that holds a variant; originals there must be."""
        places = [data_root(root) / home / variant / part for home in self.homes]
        found = next((place for place in places if place.is_dir()), None)
        if found is None and variant == "original":
            raise Missing(self.name, data_root(root) / self.home / variant / part, self.how)
        return found

    def scenes(self, root: Path | None, part: str) -> Scenes | None:
        """The originals with their masks, where there are any."""
        folder = self.find(root, "original", part)
        assert folder is not None
        home = folder.parent.parent
        if not (home / "masks" / part).is_dir():
            return None
        return Scenes(self.listed(folder), home, read_boxes(home))

    def read(self, folder: Path) -> Part:
        """A folder's images, once it is sure that they are this set's."""
        part = self.listed(folder)
        self.check_size(part)
        return part

    def listed(self, folder: Path) -> Part:
        """A folder's images, by the names of its classes this set's."""
        part = read_part(folder)
        if wrong := set(TAUGHT) - set(part.classes):
            raise BadRequest(f"{folder} lacks {', '.join(sorted(wrong))}")
        if wrong := set(part.classes) - set(FOLDERS):
            raise BadRequest(f"{folder} holds {', '.join(sorted(wrong))}, which ImageNet-9 has not")
        return part

    def check_size(self, part: Part) -> None:
        """Refuses images that are too small, by the first of them."""
        with opened(part.path(0)) as image:
            width, height = image.size
        if min(width, height) < self.smallest:
            raise BadRequest(
                f"{part.path(0)} is {width} x {height} pixels, too small for {self.name}: for images such "
                f"as these there is {TINY.name}"
            )

    def where(self, root: Path | None) -> str:
        """The folder it is in, and how many of the test sets can be had; nothing is read."""
        train, val = (self.find(root, "original", part) for part in ("train", "val"))
        assert train is not None
        assert val is not None
        masks = (val.parent.parent / "masks/val").is_dir()
        had = [test for test in TESTS if self.find(root, test, "val") or (masks and test in VARIANTS)]
        return f"{train.parent.parent}, {len(had)} of {len(TESTS)} test sets"

    def check(self, root: Path | None, progress: Progress = silent) -> str:
        """Whether the whole set is in order, and what there is of it."""
        said = []
        with all_refusals() as trying:
            for part in ("train", "val"):
                folders = {variant: self.find(root, variant, part) for variant in TESTS}
                for variant, folder in folders.items():
                    with trying():
                        if folder is not None:
                            images = self.listed(folder)
                            said.append(check_images(images, f"{variant}/{part}", progress))
                            self.check_size(images)
                with trying():
                    if (scenes := self.scenes(root, part)) is not None:
                        said.append(check_scenes(scenes, f"masks/{part}", progress))
        return "\n".join(said)


def known(variant: str) -> str:
    """A variant's name, unless it is not one."""
    if variant not in TESTS:
        raise BadRequest(f"there is no variant {variant}; there are {', '.join(TESTS)}")
    return variant


def taught(part: Part) -> tuple[list[int], Tensor]:
    """The rows of the classes that are taught, and their labels."""
    rows = [row for row, label in enumerate(part.labels) if part.classes[label] != LEFT_OUT]
    return rows, torch.tensor([TAUGHT.index(part.classes[part.labels[row]]) for row in rows])


IMAGENET9 = Kind(
    "split-imagenet9",
    "imagenet9",
    ("imagenet9/bg_challenge", "bg_challenge", "imagenet9", ""),
    128,
    "unpack original.tar.gz (training images) and the release (test sets) of "
    "https://github.com/MadryLab/backgrounds_challenge in the folder imagenet9",
)
TINY = Kind(
    "split-tiny-imagenet9",
    "tiny-in9",
    ("tiny-in9", ""),
    1,
    "put small images there in ImageNet-9's layout, original/{train,val}/00_dog and so on, masks/ beside original/",
)
