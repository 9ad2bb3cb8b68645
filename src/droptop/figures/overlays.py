"""Where a trained model attention_pass in single images: each beside itself with its attention laid over it.

Unlike the maps of a training step, which BatchNorm makes depend on the whole batch, these are of the model as it
predicts: an image's map is the same whatever it is shown beside.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from droptop.learner import Learner
from droptop.learner_attention import attention_of

LEAST = 224  # pixels a side; a smaller image is enlarged by a whole number
GAP = 4  # white pixels between the two
OPACITY = 0.6


def overlay(x: Tensor, scores: Tensor) -> Image.Image:
    """An image (c, h, w) beside itself under its scores (h', w'): dark where they are lowest, bright where highest."""
    from matplotlib import colormaps  # slow to load

    scale = -(-LEAST // min(x.shape[1:]))
    height, width = (side * scale for side in x.shape[1:])
    pixels = x.expand(3, -1, -1).permute(1, 2, 0).numpy()
    image = Image.fromarray(pixels).resize((width, height), Image.Resampling.NEAREST)
    low, high = scores.aminmax()
    spread = F.interpolate(
        ((scores - low) / (high - low).clamp(min=1e-12))[None, None],
        (height, width),
        mode="bilinear",
        align_corners=False,
    )[0, 0]
    heat = Image.fromarray((255 * colormaps["magma"](spread.numpy())[..., :3]).round().astype(np.uint8))
    pair = Image.new("RGB", (2 * width + GAP, height), "white")
    pair.paste(image, (0, 0))
    pair.paste(Image.blend(image, heat, OPACITY), (width + GAP, 0))
    return pair


class Overlays:
    """Overlays as PNG files in a folder, each named as its image is; of equal names the second one ends in -2."""

    def __init__(self, learner: Learner, folder: Path) -> None:
        self.learner, self.folder = learner, folder
        self.taken: set[str] = set()

    def write(self, paths: Sequence[Path], x: Tensor) -> list[Path]:
        """Writes those of a batch; gives where they are."""
        maps = attention_of(self.learner, x, predicting=True).cpu()
        written = [self.folder / self.name(path) for path in paths]
        for image, scores, file in zip(x, maps, written):
            overlay(image, scores).save(file)
        return written

    def name(self, path: Path) -> str:
        name, copies = f"{path.stem}.png", 1
        while name.lower() in self.taken:  # as disks compare names that do not tell A from a
            copies += 1
            name = f"{path.stem}-{copies}.png"
        self.taken.add(name.lower())
        return name
