"""Image files from anywhere, decoded and resized as the stream that a learner was trained on does.

Streams of folders scale an image until its shorter side fits, and take the centre. The same is done here for every
stream. Where the images of a stream have a black border (28 x 28 in 32 x 32), an image gets one too, unless it has the
full size already.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from droptop.data.image_cache import in_parallel, silent
from droptop.data.image_decoding import fit, read_image
from droptop.data.left_out import ENDINGS
from droptop.errors import BadRequest

WALKED = (*ENDINGS, ".bmp")  # searched for in folders; a file given by name may have any ending


def find_images(paths: Sequence[Path]) -> list[Path]:
    """Return the files among these paths and the images in the folders among them, sorted per folder, each once."""
    unique: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise BadRequest(f"there is no image {path}")
        images = [path] if path.is_file() else walk(path)
        if not images:
            raise BadRequest(f"{path} holds no images ({', '.join(WALKED)})")
        unique |= dict.fromkeys(images)
    return list(unique)


def walk(folder: Path) -> list[Path]:
    """Return the images at any depth below a folder, hidden files and folders left out."""
    images = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        visible = [name for name in sorted(files) if not name.startswith(".")]
        images += [Path(place, name) for name in visible if name.lower().endswith(WALKED)]
    return images


def load(path: Path, shape: tuple[int, int, int], border: int = 0) -> Tensor:
    """Return an image as a stream of this shape (c, h, w) would give it, with a border of so many black pixels."""
    channels, height, width = shape
    inner = (width - 2 * border, height - 2 * border)
    image = read_image(path, at_least=max(inner))
    if image.size != (width, height):
        framed = Image.new("RGB", (width, height))
        framed.paste(fit(image, inner), (border, border))
        image = framed
    pixels = torch.from_numpy(np.array(image.convert("L" if channels == 1 else "RGB")))
    return pixels.view(height, width, -1).permute(2, 0, 1)


def load_all(
    paths: Sequence[Path], shape: tuple[int, int, int], border: int, batch: int
) -> Iterator[tuple[list[Path], Tensor, list[str]]]:
    """Yield batches of files, their images (N, c, h, w), and the errors of files that are left out.

    Files are read by several threads.
    """

    def attempt(path: Path) -> Tensor | str:
        try:
            return load(path, shape, border)
        except BadRequest as error:
            return str(error)

    for start in range(0, len(paths), batch):
        part = paths[start : start + batch]
        read = dict(zip(part, (image for block in in_parallel(attempt, part, silent, "") for image in block)))
        images = {path: image for path, image in read.items() if isinstance(image, Tensor)}
        pixels = torch.stack(list(images.values())) if images else torch.zeros(0, *shape, dtype=torch.uint8)
        yield list(images), pixels, [error for error in read.values() if isinstance(error, str)]
