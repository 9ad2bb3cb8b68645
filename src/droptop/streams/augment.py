"""Augmentation of a whole batch at once, on the device where it lies, with the generator that is given.

    crop-flip     shift by up to 4 pixels over black, mirror half of the time: for 32 px
    crop-resize   enlarge a random box to the whole image, mirror half of the time: for 64 px and more

Nothing here waits for the device: every choice is a tensor, so that a step can be captured and replayed.
"""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Augment = Literal["none", "crop-flip", "crop-resize"]
ATTEMPTS = 10  # boxes drawn per image, of which the first that fits is taken
RATIOS = (3 / 4, 4 / 3)  # width over height of a box


def augment(x: Tensor, kind: Augment, generator: torch.Generator, crop_area: float = 0.25) -> Tensor:
    """Return a batch (B, c, h, w) augmented in one of the ways above; `crop_area` is the least share of a box."""
    if kind == "crop-flip":
        return crop_flip(x, generator)
    if kind == "crop-resize":
        boxes = random_boxes(len(x), x.shape[2], x.shape[3], generator, (crop_area, 1.0))
        return resize_boxes(x, boxes, torch.rand(len(x), generator=generator, device=x.device) < 0.5)
    return x


def crop_flip(x: Tensor, generator: torch.Generator, padding: int = 4) -> Tensor:
    """Shift each image (B, c, h, w) by up to `padding` pixels over black, and mirror it half of the time."""
    samples, _, height, width = x.shape
    shift = torch.randint(0, 2 * padding + 1, (2, samples, 1), generator=generator, device=x.device)
    mirror = torch.rand(samples, 1, generator=generator, device=x.device) < 0.5
    rows = torch.arange(height, device=x.device) + shift[0]
    columns = torch.arange(width, device=x.device).expand(samples, -1)
    columns = torch.where(mirror, columns.flip(1), columns) + shift[1]
    padded = F.pad(x, (padding,) * 4)
    image = torch.arange(samples, device=x.device)[:, None, None]
    return padded[image, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def random_boxes(
    count: int,
    height: int,
    width: int,
    generator: torch.Generator,
    area: tuple[float, float],
    ratio: tuple[float, float] = RATIOS,
) -> Tensor:
    """Draw boxes as torchvision's RandomResizedCrop does; return top, left, height and width (4, count).

    The share of the image is uniform, the ratio of the sides log-uniform, the place uniform. A box that does not fit is
    drawn again; where none of ten fits, the largest box in the middle that has an allowed ratio is taken.
    """
    device = generator.device
    share, log_ratio, y, x = torch.rand(4, ATTEMPTS, count, generator=generator, device=device)
    pixels = height * width * (area[0] + (area[1] - area[0]) * share)
    sides = torch.exp(math.log(ratio[0]) + (math.log(ratio[1]) - math.log(ratio[0])) * log_ratio)
    h, w = (pixels / sides).sqrt().round(), (pixels * sides).sqrt().round()
    fits = (h >= 1) & (h <= height) & (w >= 1) & (w <= width)
    top, left = (torch.minimum((u * (room + 1)).floor(), room) for u, room in ((y, height - h), (x, width - w)))
    drawn = torch.stack([top, left, h, w]).gather(1, fits.int().argmax(0).expand(4, 1, -1))[:, 0]
    whole_h, whole_w = min(height, round(width / ratio[0])), min(width, round(height * ratio[1]))
    middle = ((height - whole_h) // 2, (width - whole_w) // 2, whole_h, whole_w)
    fallback = torch.stack([torch.full((count,), float(side), device=device) for side in middle])
    return torch.where(fits.any(0), drawn, fallback)


def resize_boxes(x: Tensor, boxes: Tensor, mirror: Tensor) -> Tensor:
    """Enlarge the box (4, B) of each image to the whole image, bilinearly, and mirror where `mirror` is true.

    Keeps the dtype.
    """
    height, width = x.shape[2:]
    top, left, h, w = boxes[:, :, None]

    def sampled(start: Tensor, length: Tensor, size: int) -> Tensor:
        """Return the places of `size` pixel centres in the box, never beyond the centres of its outermost pixels."""
        centres = (torch.arange(size, device=x.device) + 0.5) * length / size - 0.5
        return start + torch.minimum(centres.clamp(min=0), length - 1)

    rows, columns = sampled(top, h, height), sampled(left, w, width)
    columns = torch.where(mirror[:, None], columns.flip(1), columns)
    places = torch.stack(
        torch.broadcast_tensors(((2 * columns + 1) / width - 1)[:, None, :], ((2 * rows + 1) / height - 1)[:, :, None]),
        -1,
    )
    resized = F.grid_sample(x.float(), places, mode="bilinear", padding_mode="border", align_corners=False)
    return (resized if x.is_floating_point() else resized.round()).to(x.dtype)
