"""DropTop as a plugin for Avalanche's supervised strategies (avalanche-lib, Lomonaco et al., 2021).

    from avalanche.training import Naive
    from avalanche.training.plugins import ReplayPlugin

    plugins = [ReplayPlugin(mem_size=500), DropTopPlugin("maxpool", "layer4", classes=10)]
    strategy = Naive(model=model, optimizer=optimizer, criterion=criterion, train_mb_size=32, plugins=plugins)

Every training pass is debiased, stream and memory samples alike, and intensities follow the loss on the memory of the
strategy's ReplayPlugin (or of any other plugin with a `storage_policy`), read once an experience without augmentation.
Avalanche fills that memory after an experience, so the intensities of its classes begin to adapt with the next one;
without a memory they stay at `kappa_0`. Avalanche itself is not imported: a plugin is whatever has its callbacks.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from droptop.debias.attach import Attached, attach

Memory = tuple[Tensor, Tensor]  # images as the model takes them, and labels


class DropTopPlugin:
    """`first`, `last`, `classes` and the options are those of `droptop.attach`; a model whose call needs more than
    images (a multi-task one) takes `classify` among them. `memory` gives images and labels of a strategy that keeps
    them elsewhere."""

    supports_distributed = False

    def __init__(
        self, first: str, last: str, classes: int, memory: Callable[[Any], Memory] | None = None, **options: Any
    ) -> None:
        self.first, self.last, self.classes, self.options = first, last, classes, options
        self.memory = memory or replayed
        self.layer: Attached | None = None
        self.remembered: Memory | None = None  # this experience's
        self.labels: AbstractContextManager[None] | None = None

    def before_training_exp(self, strategy: Any, **_: Any) -> None:
        """The model may have grown, or be another one, since the last experience."""
        self.remembered = None
        if self.layer is not None and self.layer.model is strategy.model:
            return
        before = self.layer
        if before is not None:
            before.remove()
        self.layer = attach(strategy.model, self.first, self.last, self.classes, **self.options)
        if before is not None:
            self.layer.load_state_dict(before.state_dict())

    def before_forward(self, strategy: Any, **_: Any) -> None:
        assert self.layer is not None
        self.after_forward(strategy)  # of a pass that ended in an error
        self.labels = self.layer.labels(strategy.mb_y)
        self.labels.__enter__()

    def after_forward(self, strategy: Any, **_: Any) -> None:
        if self.labels is not None:
            self.labels.__exit__(None, None, None)
            self.labels = None

    def after_update(self, strategy: Any, **_: Any) -> None:
        assert self.layer is not None
        if self.layer.tick():
            self.remembered = self.remembered or self.memory(strategy)
            self.layer.probe(*self.remembered)


def replayed(strategy: Any) -> Memory:
    """What the first plugin with a storage policy remembers, as it is evaluated; nothing where there is none."""
    policies = (plugin.storage_policy for plugin in strategy.plugins if hasattr(plugin, "storage_policy"))
    policy = next(policies, None)
    if policy is None or len(policy.buffer) == 0:
        return torch.zeros(0), torch.zeros(0, dtype=torch.int64)
    rows = [row[:2] for row in policy.buffer.eval()]
    return torch.stack([x for x, _ in rows]), torch.tensor([int(y) for _, y in rows])
