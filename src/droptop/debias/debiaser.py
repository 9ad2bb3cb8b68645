"""What a debiaser is: up to four changes to a training step, each in a place of its own, and a look before.

    see        before augmentation; changes nothing
    images     after augmentation, before normalisation
    first_map  between the stem and the trunk of the net
    logits     before the loss
    penalty    added to the loss

A debiaser overrides those it needs; `docs/add-a-debiaser.md` writes one. What it draws comes from `self.generator`,
what it keeps is buffers, and it never asks the device for a value: then it resumes exactly and can be captured as a
CUDA graph. At strength zero it changes nothing, to the bit.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn


class View(NamedTuple):
    """Look ahead from the first map, without a trace in the model, and tell rows of the stream from the memory's."""

    last: Callable[..., Tensor]  # gives the last map of the unchanged first one, or of its first n rows: `last(n)`
    logits: Callable[[Tensor], Tensor] | None  # gives the logits of any first map; None in a user's own model
    stream: int | None = None  # rows of the stream, which come first, the memory's after them; None where unknown
    rows: Mapping[str, Tensor] = MappingProxyType({})  # what is known of the rows, with the debiaser's `columns`


def of_rows(last: Callable[[], Tensor]) -> Callable[..., Tensor]:
    """Return `View.last` of a model that gives the last map of all rows alone."""
    return lambda count=None: last()[:count]


@dataclass(frozen=True)
class NoSettings:
    """Hold the settings of a debiaser that has none."""


class Debiaser(nn.Module):
    """Change a training step so that the learner leans less on shortcuts: the base class of the family.

    Args:
        config: Its settings, an instance of `config_type`.
        classes: Number of classes.
        generator: Draws all that it draws, on the device of the learner.
    """

    config_type: ClassVar[type[Any]] = NoSettings  # a frozen dataclass, whose fields are its options
    needs_last: ClassVar[bool] = False  # does `first_map` ask `view.last`? In a user's own model it takes a pass ahead
    needs_logits: ClassVar[bool] = False  # does `first_map` ask `view.logits`? A user's own model has none

    def __init__(self, config: Any, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config, self.generator = config, generator

    def __repr__(self) -> str:
        """Return its name and its settings, in one line; a module's own would be a tree."""
        settings = [field for field in fields(self.config) if not is_dataclass(getattr(self.config, field.name))]
        values = [f"{field.name}={getattr(self.config, field.name)}" for field in settings]
        return f"{type(self).__name__}({', '.join(values)})"

    def see(self, x: Tensor, labels: Tensor) -> None:
        """Look at training images (B, c, h, w) before augmentation, from 0 to 1 where they were bytes; change nothing.

        Where a method makes two views of an image, these are its rows.
        """

    def images(self, x: Tensor) -> Tensor:
        """Return changed training images (B, c, h, w); of augmented ones, from 0 to 1 where they were bytes."""
        return x

    def first_map(self, first: Tensor, view: View, labels: Tensor, direction: int | None = None) -> Tensor:
        """Return a changed first map (B, c, h, w) of stream and memory samples with these labels (B).

        `view` gives what the net would make of the map. `direction` is 0 or 1 for the two models of `--reference`,
        which DropTop alone has; None otherwise.
        """
        return first

    def logits(self, logits: Tensor) -> Tensor:
        """Return changed logits (B, classes) of the step, of which the loss is taken; predictions have none of it."""
        return logits

    def penalty(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return what is added to the loss: one number, from the logits (B, classes) of the step."""
        return logits.new_zeros(())

    # -- What the memory keeps for it ------------------------------------------------------------------------------

    def columns(self, first: Tensor) -> dict[str, Tensor]:
        """Describe what the memory keeps of a sample for this debiaser: an example row by column, from a first map."""
        return {}

    @property
    def keeps(self) -> bool:
        """Return whether it has such columns."""
        return type(self).columns is not Debiaser.columns

    def kept(self) -> dict[str, Tensor]:
        """Return these columns of the stream's rows of the last batch."""
        return {}

    @classmethod
    def acts_on(cls, place: str) -> bool:
        """Return whether the class defines this place: see, images, first_map, logits or penalty."""
        return getattr(cls, place) is not getattr(Debiaser, place)

    # -- Drawing ---------------------------------------------------------------------------------------------------

    def uniform(self, *shape: int, device: torch.device) -> Tensor:
        """Draw numbers in [0, 1) from the debiaser's generator."""
        return torch.rand(shape, generator=self.generator, device=device)

    def permutation(self, count: int, device: torch.device) -> Tensor:
        """Draw an order of so many samples; unlike `torch.randperm`, without waiting for the device."""
        return self.uniform(count, device=device).argsort()


def name_of(kind: type[Debiaser]) -> str:
    """Return the name of a debiaser, which heads its options and its state: that of its class in lower case."""
    return kind.__name__.lower()
