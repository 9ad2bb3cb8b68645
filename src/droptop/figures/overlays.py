"""Attention of a trained model in single images: each image beside a copy with its attention laid over it.

In training, BatchNorm makes a map depend on the whole batch. These maps are those of the model as it predicts: an
image's map does not depend on the other images.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from droptop.learner import Learner
from droptop.learner_attention import attention_of

LEAST = 224  # pixels per side; a smaller image is enlarged by a whole number
GAP = 4  # white pixels between image and copy
OPACITY = 0.6


def overlay(x: Tensor, scores: Tensor) -> Image.Image:
    """Return an image (c, h, w) beside a copy under its scores (h', w'): dark where lowest, bright where highest."""
    from matplotlib import colormaps  # slow to load

    scale = -(-LEAST // min(x.shape[1:]))
    height, width = (side * scale for side in x.shape[1:])
    pixels = x.expand(3, -1, -1).permute(1, 2, 0).numpy()
    image = Image.fromarray(pixels).resize((width, height), Image.Resampling.NEAREST)
    low, high = scores.aminmax()
    scaled = ((scores - low) / (high - low).clamp(min=1e-12))[None, None]
    enlarged = F.interpolate(scaled, (height, width), mode="bilinear", align_corners=False)[0, 0]
    heat = Image.fromarray((255 * colormaps["magma"](enlarged.numpy())[..., :3]).round().astype(np.uint8))
    pair = Image.new("RGB", (2 * width + GAP, height), "white")
    pair.paste(image, (0, 0))
    pair.paste(Image.blend(image, heat, OPACITY), (width + GAP, 0))
    return pair


class Overlays:
    """Write overlays as PNG files into a folder, named as their images; a second one of a name ends in -2."""

    def __init__(self, learner: Learner, folder: Path) -> None:
        self.learner, self.folder = learner, folder
        self.taken: set[str] = set()

    def write(self, paths: Sequence[Path], x: Tensor) -> list[Path]:
        """Write the overlays of a batch of images; return the paths of the files."""
        maps = attention_of(self.learner, x, predicting=True).cpu()
        written = [self.folder / self.name(path) for path in paths]
        for image, scores, file in zip(x, maps, written):
            overlay(image, scores).save(file)
        return written

    def name(self, path: Path) -> str:
        """Return a file name for the overlay of an image, and keep others from taking it."""
        name, copies = f"{path.stem}.png", 1
        while name.lower() in self.taken:  # some disks take A and a for the same name
            copies += 1
            name = f"{path.stem}-{copies}.png"
        self.taken.add(name.lower())
        return name
