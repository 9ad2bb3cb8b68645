"""Small trees of images to test with, every image unlike the others."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image

EVIL = "<img src=x onerror=\"document.title='taken over'\">"  # a class's name that a page must not take for its own


def picture(seed: int, size: tuple[int, int] = (12, 12)) -> Image.Image:
    """Noise without black, of width x height."""
    return Image.fromarray(np.random.default_rng(seed).integers(1, 256, (size[1], size[0], 3), dtype=np.uint8))


def mask_of(seed: int, size: tuple[int, int] = (12, 12)) -> Image.Image:
    """A blob, off the middle."""
    left, top = np.random.default_rng(seed).integers(1, 4, 2)
    mask = np.zeros((size[1], size[0]), np.uint8)
    mask[top : top + size[1] // 2, left : left + size[0] // 3] = 255
    mask[top, left] = 0  # not quite a rectangle
    return Image.fromarray(mask)


def write_tree(
    folder: Path,
    parts: Mapping[str, Mapping[str, int]],
    masks: bool = False,
    size: tuple[int, int] = (12, 12),
    boxes: bool = False,
) -> Path:
    """FOLDER/PART/CLASS/N.png for the numbers of images given, with masks and boxes on demand."""
    noted, seed = {}, 0
    for part, classes in parts.items():
        for name, count in classes.items():
            for number in range(count):
                seed += 1
                save(picture(seed, size), folder / ("original" if masks else "") / part / name / f"{number}.png")
                if masks:
                    save(mask_of(seed, size), folder / "masks" / part / name / f"{number}.png")
                    noted[f"{part}/{name}/{number}"] = [1, 2, size[0] - 4, size[1] - 3]
    if boxes:
        (folder / "boxes.json").write_text(json.dumps({"boxes": noted}))
    return folder


def save(image: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))
