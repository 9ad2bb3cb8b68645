"""Folders of images with foreground masks, from which background variants are made.

    FOLDER/original/{train,val}/CLASS/*.jpg     or without original/; test/ may stand for val/
    FOLDER/masks/{train,val}/CLASS/*.png        foreground: any value but 0 or, with an alpha channel, what is not clear
    FOLDER/boxes.json                           optional: {"boxes": {"val/CLASS/NAME": [left, top, right, bottom]}},
                                                in pixels, all four inside the box; else the box around the mask

The image that lends another its background (the donor) is one of the same part, and depends on the variant and on the
name of the other alone. The authors of the variants drop images whose box covers more than 90%. Here they stay, so that
all test sets show the same images, but they lend no background unless twenty draws find no other donor.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from droptop.data.image_cache import ImageSet
from droptop.data.image_decoding import fit, opened, read_image, room_for
from droptop.data.image_folders import ImageFolder
from droptop.data.variants import Box, Mask, Pixels, box_of, mixed, no_fg, only_bg_b, only_bg_t, only_fg
from droptop.errors import BadRequest, refuse
from droptop.rng import derive
from droptop.system.json_files import read_json

MOST = 0.9  # share of a donor's pixels that its box may cover
DRAWS = 20  # of a donor
BOXES = "boxes.json"
MASK = "mask"  # in place of a variant: the foreground in white on black


def plain(part: ImageFolder, size: int, what: str) -> ImageSet:
    """Return how to make the images of a part as they are."""
    return ImageSet(
        what,
        "plain",
        size,
        part.home,
        part.names,
        range(len(part)),
        lambda row: read_image(part.path(row), at_least=size),
    )


@dataclass(frozen=True)
class Scenes:
    """Make background variants of the images of a part, which have masks and may have boxes."""

    part: ImageFolder
    home: Path  # holds masks and boxes
    boxes: dict[str, Box]  # by the images' stems

    def image_set(self, variant: str, rows: Sequence[int], size: int, what: str) -> ImageSet:
        """Return how to make a variant of some rows; any image of the part may lend its background."""
        images = self.part.home.relative_to(self.home)
        files = [(images / name).as_posix() for name in self.part.names]
        files += [f"masks/{self.part.stem(row)}.png" for row in range(len(self.part))]
        files += [BOXES] if (self.home / BOXES).exists() else []
        return ImageSet(what, variant, size, self.home, files, rows, partial(self.make, variant))

    def mask_path(self, row: int) -> Path:
        """Return where the mask of an image belongs."""
        return self.home / "masks" / f"{self.part.stem(row)}.png"

    def read(self, row: int) -> tuple[Pixels, Mask]:
        """Return an image and its mask; refuse a mask of another size."""
        image = np.asarray(read_image(self.part.path(row)))
        with opened(self.mask_path(row)) as file, room_for(file):
            mask = foreground(file)
        if mask.shape != image.shape[:2]:
            raise BadRequest(
                f"{self.mask_path(row)} is {mask.shape[1]} x {mask.shape[0]} pixels, its image "
                f"{self.part.path(row)} {image.shape[1]} x {image.shape[0]}"
            )
        return image, mask

    def box(self, row: int, mask: Mask) -> Box:
        """Return the box of an image: the one in boxes.json, else the smallest around its mask."""
        listed = self.boxes.get(self.part.stem(row))
        return box_of(mask) if listed is None else listed.within(*mask.shape)

    def make(self, variant: str, row: int) -> Image.Image:
        """Return a variant of one image, at the size of the image."""
        image, mask = self.read(row)
        if variant == MASK:
            made = np.where(mask, np.uint8(255), np.uint8(0))[..., None].repeat(3, 2)
        elif variant == "only_fg":
            made = only_fg(image, mask)
        elif variant == "no_fg":
            made = no_fg(image, mask)
        elif variant == "only_bg_b":
            made = only_bg_b(image, self.box(row, mask))
        elif variant == "only_bg_t":
            made = only_bg_t(image, self.box(row, mask))
        else:
            background = fit(Image.fromarray(self.background_for(variant, row)), (image.shape[1], image.shape[0]))
            made = mixed(image, mask, np.asarray(background))
        return Image.fromarray(made)

    def background_for(self, variant: str, row: int) -> Pixels:
        """Return the background that an image is given, at the size of its donor."""
        for donor in self.donors(variant, row):
            image, mask = self.read(donor)
            box = self.box(donor, mask)
            if box.area <= MOST * mask.size:
                break
        return only_bg_t(image, box)

    def donors(self, variant: str, row: int) -> Iterator[int]:
        """Yield the rows that may lend an image its background, in the order in which they are drawn."""
        name, label, classes = self.part.stem(row), self.part.labels[row], len(self.part.classes)
        chosen = {
            "mixed_same": label,
            "mixed_next": (label + 1) % classes,
            "mixed_rand": derive(0, variant, name) % classes,
        }[variant]
        rows = self.part.rows_of[chosen]
        others = len(rows) - (chosen == label)
        for draw in range(DRAWS if others else 0):
            position = derive(0, variant, name, draw) % others
            yield rows[position + (chosen == label and rows[position] >= row)]
        if not others:
            yield row  # the only image of its class

    def complete(self) -> "Scenes":
        """Return itself; refuse images without a mask, and two images that would share one."""
        seen: dict[str, str] = {}
        errors = []
        for row, name in enumerate(self.part.names):
            if (other := seen.setdefault(self.part.stem(row), name)) != name:
                errors.append(BadRequest(f"{self.part.home}: {other} and {name} would share one mask"))
            elif not self.mask_path(row).is_file():
                errors.append(BadRequest(f"{self.part.path(row)} has no mask: looked for {self.mask_path(row)}"))
        refuse(errors)
        return self


def foreground(file: Image.Image) -> Mask:
    """Return where a mask is foreground: where it is not clear if it has an alpha channel, else where it is not 0.

    An alpha channel that is opaque everywhere does not count. A colour is 0 where it is black; in a palette without
    black, the numbers count instead.
    """
    if "transparency" in file.info or file.mode == "LA":
        file = file.convert("RGBA")
    if file.mode == "P":
        colours = np.asarray(file.convert("RGB")).any(-1)
        return np.asarray(file) != 0 if colours.all() else np.asarray(colours)
    values = np.asarray(file)
    if file.mode == "RGBA":
        values, alpha = values[..., :3], values[..., 3]
        if (alpha < 255).any():
            return np.asarray(alpha != 0)
    return np.asarray(values.any(-1)) if values.ndim == 3 else values != 0


def read_boxes(home: Path) -> dict[str, Box]:
    """Return the boxes in boxes.json by the names of images without ending; none where there is no such file."""
    path = home / BOXES
    if not path.exists():
        return {}
    try:
        listed = read_json(path)["boxes"]
        boxes = {
            str(stem): Box(max(0, left), max(0, top), right + 1, bottom + 1)
            for stem, (left, top, right, bottom) in listed.items()
        }
        if any(type(edge) is not int for box in boxes.values() for edge in box):
            raise TypeError
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadRequest(
            f'{path} is not {{"boxes": {{"val/CLASS/NAME": [left, top, right, bottom]}}}}, in whole pixels'
        ) from None
    for stem, box in boxes.items():
        if box.right <= box.left or box.bottom <= box.top:
            raise BadRequest(f"{path}: the box of {stem} ends before it begins")
    return boxes
