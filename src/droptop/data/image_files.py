"""Image files from anywhere, made into what a learner of some stream takes: decoded and resized as its stream does.

Streams of folders scale an image until its shorter side fits, and take the centre. So does this, for every stream;
where images have a black border (28 x 28 in 32 x 32), any that is not of the full size already is given one.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from droptop.data.image_cache import fit, in_parallel, read_image, silent
from droptop.data.image_folders import ENDINGS
from droptop.errors import BadRequest

WALKED = (*ENDINGS, ".bmp")  # in folders; a file that is named is read whatever its ending


def find_images(paths: Sequence[Path]) -> list[Path]:
    """The files that are named, and those in the folders that are, sorted; none twice."""
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise BadRequest(f"there is no image {path}")
        images = [path] if path.is_file() else walk(path)
        if not images:
            raise BadRequest(f"{path} holds no images ({', '.join(WALKED)})")
        found |= dict.fromkeys(images)
    return list(found)


def walk(folder: Path) -> list[Path]:
    """The images below a folder; what is hidden is passed over."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [
            Path(place, name) for name in sorted(files) if name.lower().endswith(WALKED) and not name.startswith(".")
        ]
    return found


def load(path: Path, shape: tuple[int, int, int], border: int = 0) -> Tensor:
    """An image as a stream of this shape (c, h, w) has it, whose images have a border of so many black pixels."""
    channels, height, width = shape
    inner = (width - 2 * border, height - 2 * border)
    image = read_image(path, at_least=max(inner))
    if image.size != (width, height):
        framed = Image.new("RGB", (width, height))
        framed.paste(fit(image, inner), (border, border))
        image = framed
    return (
        torch.from_numpy(np.array(image.convert("L" if channels == 1 else "RGB")))
        .view(height, width, -1)
        .permute(2, 0, 1)
    )


def load_all(
    paths: Sequence[Path], shape: tuple[int, int, int], border: int, batch: int
) -> Iterator[tuple[list[Path], Tensor, list[str]]]:
    """Batches of files and their images (N, c, h, w), read by several threads; beside them, what is wrong with those
    files that are left out."""

    def tried(path: Path) -> Tensor | str:
        try:
            return load(path, shape, border)
        except BadRequest as error:
            return str(error)

    for start in range(0, len(paths), batch):
        part = paths[start : start + batch]
        read = dict(zip(part, (each for some in in_parallel(tried, part, silent, "") for each in some)))
        images = {path: image for path, image in read.items() if isinstance(image, Tensor)}
        pixels = torch.stack(list(images.values())) if images else torch.zeros(0, *shape, dtype=torch.uint8)
        yield list(images), pixels, [error for error in read.values() if isinstance(error, str)]
