"""Debiasers together: each acts in the order in which `--debias droptop+mixstyle` names them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from droptop.debias.debiaser import Debiaser, View, name_of
from droptop.debias.droptop import DropTop
from droptop.errors import DroptopError, a_kind
from droptop.nets.backbone import AttentionNorm
from droptop.system.devices import moved


class Chosen(NamedTuple):
    """Name a debiaser and its settings, of which a learner makes the debiaser itself."""

    kind: type[Debiaser]
    config: Any


class Family:
    """Hold the debiasers of a learner, by name; none where nothing is debiased."""

    def __init__(self, chosen: Sequence[Chosen], classes: int, generator: torch.Generator) -> None:
        self.members = {name_of(kind): kind(config, classes, generator) for kind, config in chosen}
        self.move(generator)

    def move(self, generator: torch.Generator) -> None:
        """Move to the device of a generator, from which all members draw from now on."""
        self.generator = generator
        for member in self.members.values():
            moved(member, generator.device).generator = generator

    def act_on(self, place: str) -> list[Debiaser]:
        """Return the members that act in a place: see, images, first_map, logits or penalty."""
        return [member for member in self.members.values() if member.acts_on(place)]

    @property
    def droptop(self) -> DropTop | None:
        """Return DropTop, if it is a member: it alone has intensities, and leaves a trace."""
        return next((member for member in self.members.values() if isinstance(member, DropTop)), None)

    @property
    def adapts(self) -> bool:
        """Return whether intensities are adapted while training."""
        return self.droptop is not None and self.droptop.adapts

    @property
    def attention_pass(self) -> AttentionNorm | None:
        """Return what BatchNorm normalises by in the attention pass; None where no member looks at the last map."""
        if self.droptop is not None and self.droptop.attention_pass is not None:
            return self.droptop.attention_pass
        return "batch" if any(member.needs_last for member in self.members.values()) else None

    def see(self, x: Tensor, labels: Tensor) -> None:
        """Show every member that looks at them the images before augmentation."""
        for member in self.act_on("see"):
            member.see(x, labels)

    def images(self, x: Tensor) -> Tensor:
        """Return images changed by every member that acts on them."""
        for member in self.act_on("images"):
            x = member.images(x)
        return x

    def first_map(self, first: Tensor, view: View, labels: Tensor, direction: int | None = None) -> Tensor:
        """Return the first map changed by every member that acts on it."""
        for member in self.act_on("first_map"):
            first = member.first_map(first, view, labels, direction)
        return first

    def logits(self, logits: Tensor) -> Tensor:
        """Return the logits of which the loss is taken, changed by every member that acts on them."""
        for member in self.act_on("logits"):
            changed = member.logits(logits)
            if not isinstance(changed, Tensor) or changed.shape != logits.shape:
                given = f"shape {tuple(changed.shape)}" if isinstance(changed, Tensor) else a_kind(type(changed))
                name = type(member).__name__
                raise DroptopError(f"{name}.logits is to give logits of shape {tuple(logits.shape)}, not {given}")
            logits = changed
        return logits

    def penalised(self, loss: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss with the penalty of every member that has one."""
        for member in self.act_on("penalty"):
            loss = loss + member.penalty(logits, labels)
        return loss

    @property
    def keeps(self) -> bool:
        """Return whether a member has the memory keep something of each sample."""
        return any(member.keeps for member in self.members.values())

    def columns(self, first: Tensor) -> dict[str, Tensor]:
        """Describe what the memory keeps of a sample for all members: an example row by column, from a first map."""
        return {name: row for member in self.members.values() for name, row in member.columns(first).items()}

    def kept(self) -> dict[str, Tensor]:
        """Return these columns of the stream's rows of the last batch."""
        return {name: rows for member in self.members.values() for name, rows in member.kept().items()}

    def guarded(self) -> list[Tensor]:
        """Return the tensors that a step may change: of all members but DropTop, whose state changes in a probe."""
        members = [member for member in self.members.values() if not isinstance(member, DropTop)]
        return [value for member in members for value in member.state_dict().values()]

    def state_dict(self) -> dict[str, Tensor]:
        """Return the tensors of every member, by its name."""
        return {
            f"{name}.{key}": value
            for name, member in self.members.items()
            for key, value in member.state_dict().items()
        }
