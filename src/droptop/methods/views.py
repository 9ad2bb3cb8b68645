"""The base of methods that learn from two views of every image: as it is, and changed at random.

The second view is enlarged from a random box of at least a fifth of the image, mirrored half of the time, and changed
in colour with a chance of `jitter`, as in the authors' code of SCR and PCR. So even without debiasing these methods do
what `--debias colour` does; `--jitter 0` leaves the colours alone. All is drawn by the generator of augmentations.

The rows of a step: the stream's first views, then their second ones, then those of the memory likewise.
Cost of a step: twice ER's, at equal batch sizes.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from droptop.debias import Colour, Trace
from droptop.debias.colour import ColourConfig
from droptop.errors import require
from droptop.learner import Joined, Learner, LearnerConfig, unit_range
from droptop.memory import Rows
from droptop.nets import Backbone
from droptop.streams.augment import Augment

PUBLISHED: dict[str, Any] = {"augment": "crop-resize", "crop_area": 0.2}
GRAY = 0.25  # share of the changed views that lose all colour: with a jitter of 0.8, a fifth of all


@dataclass(frozen=True)
class ViewsConfig(LearnerConfig):
    """Hold the settings of every method with two views."""

    augment: Augment = "crop-resize"
    """How second views are changed at random: crop-flip shifts and mirrors them (for 32 px), crop-resize enlarges a
    random box of them and mirrors."""
    crop_area: float = 0.2
    """Smallest share of an image that crop-resize may keep."""
    jitter: float = 0.8
    """Share of the second views that change in colour."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.jitter <= 1, "jitter", "a share from 0 to 1", self.jitter)


def views_of(values: Tensor, stream: int) -> tuple[Tensor, Tensor]:
    """Return first and second views, each the stream's and then the memory's, of a batch with `stream` rows of it."""
    firsts, seconds = zip(*(part.chunk(2) for part in values.split([stream, len(values) - stream])))
    return torch.cat(firsts), torch.cat(seconds)


class TwoViews(Learner):
    """ER on two views of every image."""

    config: ViewsConfig
    config_type = ViewsConfig

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        colours = ColourConfig(hue=0.1, gray=GRAY, share=self.config.jitter)
        self.jitter = Colour(colours, len(self.spec.classes), self.random["augment"]).to(self.device)

    @classmethod
    def presets(cls, stream: dict[str, Any]) -> dict[str, Any]:
        """Give the default options: the stream's, but for augmentation, which is part of the method."""
        return super().presets(stream) | PUBLISHED

    def passes(self, rows: int) -> list[int]:
        """Count both views."""
        return [2 * count for count in super().passes(rows)]

    def joined(self, stream: Rows, replayed: Rows) -> Joined:
        """Return both views of the stream's rows, then both of the memory's."""
        batch = super().joined(stream, replayed)
        views = torch.cat([unit_range(batch.x), self.second_views(batch.x)])
        places = torch.arange(2 * len(batch.y), device=self.device).view(2, -1)
        parts = [part.flatten() for part in places.split([batch.stream, len(batch.y) - batch.stream], 1)]
        order = torch.cat(parts)
        rows = {name: torch.cat([column, column])[order] for name, column in batch.rows.items()} | {"x": views[order]}
        twice = {name: torch.cat([column, column]) for name, column in replayed.items()}
        return Joined(rows["x"], rows["y"], 2 * batch.stream, twice, rows)

    def second_views(self, x: Tensor) -> Tensor:
        """Return images changed in shape and colour, on a scale from 0 to 1."""
        x = unit_range(super().augmented(x))
        return self.jitter.images(x) if self.config.jitter else x

    def augmented(self, x: Tensor) -> Tensor:
        """Return the images as they are: they are views already."""
        return x

    def forward(self, model: Backbone, images: Tensor, batch: Joined, direction: int) -> Tensor:
        """Run the forward pass; of what was dropped, note the first views' part, which reports show."""
        logits = super().forward(model, images, batch, direction)
        if self.trace is not None and model is self.model:
            self.trace = Trace(*(rows[: batch.stream // 2] for rows in self.trace))
        return logits

    def counted(self, batch: Joined) -> Tensor:
        """Return which rows count (1) and which stand in for what the memory has not yet (0), stream rows once more."""
        stream = torch.ones(batch.stream, device=self.device)
        return torch.cat([stream, batch.replayed["there"].to(stream.dtype)])
