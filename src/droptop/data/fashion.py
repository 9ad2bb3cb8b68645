"""The built-in images: a subset of Fashion-MNIST, 28 x 28 grey padded to 32 x 32 RGB."""

from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from droptop.data.root import FileProgress
from droptop.types import Samples

CLASSES = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot")
TRAIN, TEST = 1200, 200  # images per class
PADDING = 2
DARKEST = 8  # what is brighter is part of a garment


@cache
def images() -> tuple[Samples, Samples]:
    """Return training and test images; on the sheet they are sorted by class, the training images first."""
    with (files("droptop.data") / "files/fashion.png").open("rb") as file:
        sheet = torch.from_numpy(np.array(Image.open(file)))
    grey = sheet.view(-1, 28, 100, 28).transpose(1, 2).reshape(-1, 28, 28)
    rgb = F.pad(grey, (PADDING,) * 4)[:, None].expand(-1, 3, -1, -1).contiguous()
    labels = torch.arange(len(CLASSES))
    edge = TRAIN * len(CLASSES)
    return (Samples(rgb[:edge], labels.repeat_interleave(TRAIN)), Samples(rgb[edge:], labels.repeat_interleave(TEST)))


def check(root: Path | None, progress: FileProgress) -> str:
    """Return a line about the images; as they are part of the package, there is nothing to check."""
    train, test = images()
    return f"{len(train):,} + {len(test):,} images of {len(CLASSES)} classes, 28 x 28"


def foreground(x: Tensor) -> Tensor:
    """Return the pixels of the garments (N, height, width), which Fashion-MNIST shows on black."""
    return x[:, 0] > DARKEST
