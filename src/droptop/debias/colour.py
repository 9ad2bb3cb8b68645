"""Colour jitter: brightness, contrast, saturation, hue and gray at random, so that a colour cannot stand for a class.

All five are affine in the channels of a pixel, so that they are one small matrix per image:

    pixel' = M pixel + offset;   M = gray or not, times hue, times saturation, times contrast, times brightness

brightness  a factor from 1 - b to 1 + b
contrast    likewise, about the image's mean gray
saturation  likewise, about the pixel's own gray
hue         a turn by up to h of a full circle about the gray axis
gray        with a chance of g, all three channels become the pixel's gray

Values are not cut off at 0 and 1, as they are where images are stored. An image takes part with a chance of `share`.
Images of one channel have brightness and contrast alone. Cost: nothing that counts.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from droptop.debias.debiaser import Debiaser
from droptop.errors import require

GRAY = (0.299, 0.587, 0.114)  # what red, green and blue weigh in a pixel's gray


@dataclass(frozen=True)
class ColourConfig:
    """Hold the settings of colour jitter."""

    brightness: float = 0.4
    """Largest change of the brightness factor from 1, up or down."""
    contrast: float = 0.4
    """Largest change of the contrast factor from 1, up or down."""
    saturation: float = 0.4
    """Largest change of the saturation factor from 1, up or down."""
    hue: float = 0.0
    """Largest turn of the hue, in full circles."""
    gray: float = 0.2
    """Share of the images that lose all colour."""
    share: float = 1.0
    """Share of the images that are changed at all."""

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast", "saturation", "gray", "share"):
            value = getattr(self, name)
            require(0 <= value <= 1, f"colour.{name}", "a number from 0 to 1", value)
        require(0 <= self.hue <= 0.5, "colour.hue", "a number from 0 to 0.5", self.hue)


def about(factor_B: Tensor, centre: Tensor) -> Tensor:
    """Return matrices (B, 3, 3) that scale a pixel by a factor about what the matrix `centre` (3, 3) makes of it."""
    factor = factor_B[:, None, None]
    return factor * torch.eye(3, device=centre.device) + (1 - factor) * centre


def hue_turn(circles_B: Tensor, across: Tensor) -> Tensor:
    """Return matrices (B, 3, 3) that turn pixels about the gray axis (1, 1, 1), by Rodrigues' formula.

    `across` (3, 3) is the cross product with that axis.
    """
    angle, one = (2 * math.pi * circles_B)[:, None, None], torch.eye(3, device=across.device)
    return angle.cos() * one + angle.sin() * across + (1 - angle.cos()) / 3


def after(second: Tensor, first: Tensor) -> Tensor:
    """Return the product of matrices (B, 3, 3), in full precision: a GPU's matrix units would round it."""
    return (second[..., :, :, None] * first[..., None, :, :]).sum(-2)


class Colour(Debiaser):
    """Change the colours of training images at random."""

    config: ColourConfig
    config_type = ColourConfig
    spread: Tensor
    gray: Tensor
    across: Tensor

    def __init__(self, config: ColourConfig, classes: int, generator: torch.Generator) -> None:
        super().__init__(config, classes, generator)
        constants = {  # on the device of the learner; no part of its state
            "spread": [[config.brightness], [config.contrast], [config.saturation]],
            "gray": [GRAY, GRAY, GRAY],
            "across": [[0, -1, 1], [1, 0, -1], [-1, 1, 0]],
        }
        for name, value in constants.items():
            self.register_buffer(name, torch.tensor(value, dtype=torch.float32), persistent=False)
        self.across /= math.sqrt(3)

    def images(self, x: Tensor) -> Tensor:
        samples, channels = x.shape[:2]
        drawn = self.uniform(6, samples, device=x.device)
        brightness, contrast, saturation = 1 + self.spread * (2 * drawn[:3] - 1)
        hue, turns_gray = self.config.hue * (2 * drawn[3] - 1), drawn[4] < self.config.gray
        means = x.mean((2, 3))
        mean_gray = (means * self.gray[0]).sum(1) if channels == 3 else means.mean(1)
        factor, offset = contrast * brightness, (1 - contrast) * brightness * mean_gray
        changed = x * factor[:, None, None, None] + offset[:, None, None, None]
        if channels == 3:
            matrix = after(hue_turn(hue, self.across), about(saturation, self.gray))
            matrix = torch.where(turns_gray[:, None, None], after(self.gray, matrix), matrix)
            changed = (matrix[..., None, None] * changed[:, None]).sum(2)
        return torch.where((drawn[5] < self.config.share)[:, None, None, None], changed, x)
