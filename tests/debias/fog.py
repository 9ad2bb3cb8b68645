"""A debiaser of a user's own: images fade into the mean of all images so far, which is state."""

from dataclasses import dataclass

import torch

from droptop.debias import Debiaser


@dataclass(frozen=True)
class FogConfig:
    """Hold the settings of fog."""

    share: float = 0.5
    """Share of the images that fade."""


class Fog(Debiaser):
    """Fade some images."""

    config_type = FogConfig

    def __init__(self, config, classes, generator):
        super().__init__(config, classes, generator)
        self.register_buffer("mean", torch.full((), 0.5))

    def images(self, x):
        """Return images of which some are half fog."""
        self.mean.lerp_(x.mean(), 0.1)
        fades = self.uniform(len(x), 1, 1, 1, device=x.device) < self.config.share
        return torch.where(fades, (x + self.mean) / 2, x)
