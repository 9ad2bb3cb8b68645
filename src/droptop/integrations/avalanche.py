"""DropTop as a plugin for Avalanche's supervised strategies (avalanche-lib, Lomonaco et al., 2021).

    from avalanche.training import Naive
    from avalanche.training.plugins import ReplayPlugin

    plugins = [ReplayPlugin(mem_size=500), DropTopPlugin("maxpool", "layer4", classes=10)]
    strategy = Naive(model=model, optimizer=optimizer, criterion=criterion, train_mb_size=32, plugins=plugins)

Every training pass is debiased, for stream and memory samples alike. Intensities follow the loss on the memory of the
strategy's ReplayPlugin (or of any other plugin with a `storage_policy`), which is read once per experience, without
augmentation. Avalanche fills that memory after an experience, so the intensities of its classes begin to adapt in the
next one; without a memory they stay at `kappa_0`. Avalanche itself is not imported: a plugin needs only its callbacks.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from droptop.debias.attach import Attached, attach

Memory = tuple[Tensor, Tensor]  # images as the model takes them, and labels


class DropTopPlugin:
    """Debias the training passes of an Avalanche strategy.

    Args:
        first: The name of the module that gives the first map, as in `droptop.attach`.
        last: The name of the module that gives the last map.
        classes: The number of classes.
        memory: A function from the strategy to images and labels, where no plugin has a `storage_policy`.
        options: Other options of `droptop.attach`; a multi-task model, whose call needs more than images, takes
            `classify`.
    """

    supports_distributed = False

    def __init__(
        self, first: str, last: str, classes: int, memory: Callable[[Any], Memory] | None = None, **options: Any
    ) -> None:
        self.first, self.last, self.classes, self.options = first, last, classes, options
        self.memory = memory or replayed
        self.layer: Attached | None = None
        self.remembered: Memory | None = None  # read once per experience
        self.labels: AbstractContextManager[None] | None = None

    def before_training_exp(self, strategy: Any, **_: Any) -> None:
        """Attach to the model if it is another one than in the last experience; intensities stay."""
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
        """Give the layer the labels of the pass that begins."""
        assert self.layer is not None
        self.after_forward(strategy)  # Avalanche does not call it when a pass fails
        self.labels = self.layer.labels(strategy.mb_y)
        self.labels.__enter__()

    def after_forward(self, strategy: Any, **_: Any) -> None:
        """Take the labels away, so that other passes are not debiased."""
        if self.labels is not None:
            self.labels.__exit__(None, None, None)
            self.labels = None

    def after_update(self, strategy: Any, **_: Any) -> None:
        """Count the step, and adapt the intensities where a probe is due."""
        assert self.layer is not None
        if self.layer.tick():
            self.remembered = self.remembered or self.memory(strategy)
            self.layer.probe(*self.remembered)


def replayed(strategy: Any) -> Memory:
    """Return images and labels that the first plugin with a storage policy remembers, without augmentation.

    Empty tensors where there is no such plugin, or it remembers nothing yet.
    """
    policies = (plugin.storage_policy for plugin in strategy.plugins if hasattr(plugin, "storage_policy"))
    policy = next(policies, None)
    if policy is None or len(policy.buffer) == 0:
        return torch.zeros(0), torch.zeros(0, dtype=torch.int64)
    rows = [row[:2] for row in policy.buffer.eval()]
    return torch.stack([x for x, _ in rows]), torch.tensor([int(y) for _, y in rows])
