"""Two views of every image, the slow way: SCR, PCR and MKD learn from images as they are, and changed at random.

The rows of a batch: first views of the stream, its second ones, and those of the memory likewise. The net of SCR and
PCR has another one within.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .slow import Row, SlowLearner
from .slow_nets import SlowNet, SlowTinyNet


class SlowInner(SlowTinyNet):
    """A tiny net within another one: its names begin with `net.`."""

    prefix = "net."


class SlowViews(SlowLearner):
    def slow_net(self, model: nn.Module) -> SlowNet:
        return SlowInner(model)

    def train(self, arrived: list[Row], replayed: list[Row]) -> tuple[float, list[Tensor]]:
        images = super().augmented([row["x"] for row in arrived + replayed])
        second = [row | {"x": image} for row, image in zip(arrived + replayed, images)]
        return super().train(arrived + second[: len(arrived)], replayed + second[len(arrived) :])

    def augmented(self, images: list[Tensor]) -> list[Tensor]:
        return images

    def counting(self, rows: list[Row]) -> list[int]:
        """Places of the rows that do not stand in for what the memory has not yet."""
        return [place for place, row in enumerate(rows) if row.get("there", True)]


def views(places: Sequence[int], arrived: list[Row]) -> tuple[list[int], list[int]]:
    """Of the places of all rows, those of first and of second views; half of `arrived` are first ones."""
    stream, memory = places[: len(arrived)], places[len(arrived) :]
    s, m = len(stream) // 2, len(memory) // 2
    return [*stream[:s], *memory[:m]], [*stream[s:], *memory[m:]]


def unit(vector: Tensor) -> Tensor:
    return vector / vector.norm()


def linear(net: SlowNet, name: str, x: Tensor) -> Tensor:
    return F.linear(x, net[f"{name}.weight"], net[f"{name}.bias"])


def cosine(one: Tensor, other: Tensor) -> Tensor:
    return torch.dot(unit(one), unit(other))
