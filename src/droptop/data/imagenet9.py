"""ImageNet-9 (Xiao et al., the backgrounds challenge), without primates, as the paper has it:

    ROOT/imagenet9/VARIANT/{train,val}/00_dog/...    VARIANT: original, only_fg, only_bg_t, ... as in TESTS
    ROOT/imagenet9/{masks,boxes.json}                optional, see `scenes`

The folders may also lie in ROOT/imagenet9/bg_challenge, ROOT/bg_challenge or ROOT, depending on how the archives were
unpacked; the val folders of the challenge, which are cleaned by hand, come first. A variant without a folder is made
from images and masks, with backgrounds from all nine classes; where there are no masks either, that test set is left
out. `split-imagenet9:only_fg` trains on a variant and tests on the same sets.

`split-tiny-imagenet9` is the same stream on ROOT/tiny-in9, with images of 64 px per side. Results on it say nothing
about ImageNet-9.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from droptop.data.checks import check_images, check_scenes
from droptop.data.image_cache import ImageSet, silent
from droptop.data.image_decoding import opened
from droptop.data.image_folders import ImageFolder, read_part
from droptop.data.root import FileProgress, Missing, data_root
from droptop.data.scenes import MASK, Scenes, plain, read_boxes
from droptop.data.variants import VARIANTS
from droptop.errors import BadRequest, all_refusals

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
class ImageNet9Files:
    """Say where the images of ImageNet-9 lie, or those of a data set with the same layout."""

    name: str
    home: str  # where its folders belong, below the root
    homes: tuple[str, ...]  # where they may be, the preferred ones first
    smallest: int  # pixels per side that its images have at least
    how: str  # how to get the images

    def image_sets(
        self, variant: str, size: int, root: Path | None
    ) -> tuple[tuple[ImageSet, Tensor], dict[str, tuple[ImageSet, Tensor]]]:
        """Return how to make the training images of a variant and each test set that can be had, with their labels."""
        train = dict(self.sets(root, "train", [variant], size))
        if variant not in train:
            raise BadRequest(
                f"{self.stream_name(variant)} needs images to train on: a folder {variant}/train"
                + (" or masks/train" if variant in VARIANTS else "")
            )
        return train[variant], dict(self.sets(root, "val", TESTS, size))

    def stream_name(self, variant: str) -> str:
        """Return the name of the stream that trains on a variant."""
        return self.name if variant == "original" else f"{self.name}:{variant}"

    def sets(
        self, root: Path | None, part: str, names: Sequence[str], size: int
    ) -> Iterator[tuple[str, tuple[ImageSet, Tensor]]]:
        """Yield the images and labels of each variant that has a folder or can be made from masks, by its name."""
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
                    yield name, (scenes.image_set(name, rows, size, what), labels)

    def mask_sets(self, size: int, root: Path | None) -> tuple[tuple[ImageSet, Tensor], tuple[ImageSet, Tensor]] | None:
        """Return how to make the masks of training and test images, each with labels; None where there are none."""
        parts = {part: self.scenes(root, part) for part in ("train", "val")}
        sets = []
        for part, scenes in parts.items():
            if scenes is None:
                return None
            rows, labels = taught(scenes.complete().part)
            sets.append((scenes.image_set(MASK, rows, size, f"{self.name}, masks of {part}"), labels))
        return sets[0], sets[1]

    def find(self, root: Path | None, variant: str, part: str) -> Path | None:
        """Return the first folder that holds a variant, or None; raise `Missing` if it is the original."""
        places = [data_root(root) / home / variant / part for home in self.homes]
        folder = next((place for place in places if place.is_dir()), None)
        if folder is None and variant == "original":
            raise Missing(self.name, data_root(root) / self.home / variant / part, self.how)
        return folder

    def scenes(self, root: Path | None, part: str) -> Scenes | None:
        """Return the original images with their masks, or None where there are no masks."""
        folder = self.find(root, "original", part)
        assert folder is not None
        home = folder.parent.parent
        if not (home / "masks" / part).is_dir():
            return None
        return Scenes(self.listed(folder), home, read_boxes(home))

    def read(self, folder: Path) -> ImageFolder:
        """Return the images of a folder; refuse other classes, and images that are too small."""
        part = self.listed(folder)
        self.check_size(part)
        return part

    def listed(self, folder: Path) -> ImageFolder:
        """Return the images of a folder; refuse one whose classes are not those of ImageNet-9."""
        part = read_part(folder)
        if wrong := set(TAUGHT) - set(part.classes):
            raise BadRequest(f"{folder} lacks {', '.join(sorted(wrong))}")
        if wrong := set(part.classes) - set(FOLDERS):
            raise BadRequest(f"{folder} holds {', '.join(sorted(wrong))}, which ImageNet-9 has not")
        return part

    def check_size(self, part: ImageFolder) -> None:
        """Raise BadRequest if the first image of a part is too small."""
        with opened(part.path(0)) as image:
            width, height = image.size
        if min(width, height) < self.smallest:
            raise BadRequest(
                f"{part.path(0)} is {width} x {height} pixels, too small for {self.name}: for images such "
                f"as these there is {TINY.name}"
            )

    def where(self, root: Path | None) -> str:
        """Return the folder and how many of the test sets there are or can be made; read no image."""
        train, val = (self.find(root, "original", part) for part in ("train", "val"))
        assert train is not None
        assert val is not None
        masks = (val.parent.parent / "masks/val").is_dir()
        available = [test for test in TESTS if self.find(root, test, "val") or (masks and test in VARIANTS)]
        return f"{train.parent.parent}, {len(available)} of {len(TESTS)} test sets"

    def check(self, root: Path | None, progress: FileProgress = silent) -> str:
        """Read every image and mask and return a line per part; refuse the set with everything that is wrong."""
        lines = []
        with all_refusals() as trying:
            for part in ("train", "val"):
                folders = {variant: self.find(root, variant, part) for variant in TESTS}
                for variant, folder in folders.items():
                    with trying():
                        if folder is not None:
                            images = self.listed(folder)
                            lines.append(check_images(images, f"{variant}/{part}", progress))
                            self.check_size(images)
                with trying():
                    if (scenes := self.scenes(root, part)) is not None:
                        lines.append(check_scenes(scenes, f"masks/{part}", progress))
        return "\n".join(lines)


def known(variant: str) -> str:
    """Return the name of a variant; refuse an unknown one."""
    if variant not in TESTS:
        raise BadRequest(f"there is no variant {variant}; there are {', '.join(TESTS)}")
    return variant


def taught(part: ImageFolder) -> tuple[list[int], Tensor]:
    """Return the rows of the classes that are taught, all but primates, and their labels."""
    rows = [row for row, label in enumerate(part.labels) if part.classes[label] != LEFT_OUT]
    return rows, torch.tensor([TAUGHT.index(part.classes[part.labels[row]]) for row in rows])


IMAGENET9 = ImageNet9Files(
    "split-imagenet9",
    "imagenet9",
    ("imagenet9/bg_challenge", "bg_challenge", "imagenet9", ""),
    128,
    "unpack original.tar.gz (training images) and the release (test sets) of "
    "https://github.com/MadryLab/backgrounds_challenge in the folder imagenet9",
)
TINY = ImageNet9Files(
    "split-tiny-imagenet9",
    "tiny-in9",
    ("tiny-in9", ""),
    1,
    "put small images there in ImageNet-9's layout, original/{train,val}/00_dog and so on, masks/ beside original/",
)
