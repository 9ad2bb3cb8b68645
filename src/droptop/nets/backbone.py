"""What every backbone is: stem -> trunk -> head, with a map to look at on either side of the trunk."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

Change = Callable[[Tensor, Callable[[], Tensor]], Tensor]  # from the first map, and from the last one if asked
AttentionNorm = Literal["batch", "running"]  # what BatchNorm goes by in the attention pass


class Features(NamedTuple):
    map: Tensor  # B, c', h', w': the last map
    pooled: Tensor  # B, d: what the head sees


class Backbone(nn.Module):
    """`first = stem(x)` is a map (B, c, h, w); `trunk(first)` gives `Features`; `head(features)` gives logits.
    A trunk may take more than the map, such as a ViT's prefixes, and must do without."""

    finer: ClassVar[str] = "choose a finer --stem"  # what helps where the last map is one cell

    own_kernels = False

    def use_own_kernels(self, wanted: bool) -> None:
        """Compute by our own GPU kernels where they can be used, or by torch's: here and in every layer below."""
        for module in self.modules():
            if hasattr(module, "own_kernels"):
                module.own_kernels = wanted  # type: ignore[assignment]

    def stem(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def trunk(self, first: Tensor, *given: Any) -> Features:
        raise NotImplementedError

    def head(self, features: Features) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.trunk(self.stem(x)))

    def features(self, x: Tensor) -> Features:
        return self.trunk(self.stem(x))

    __call__: Callable[..., Any]


@contextmanager
def untracked(model: nn.Module) -> Iterator[None]:
    """BatchNorm normalises by the batch, as in training, but leaves its running statistics alone."""
    layers = [layer for layer in model.modules() if isinstance(layer, _BatchNorm) and layer.track_running_stats]
    for layer in layers:
        layer.track_running_stats = False
    try:
        yield
    finally:
        for layer in layers:
            layer.track_running_stats = True


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Eval mode and no gradient, and back."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:  # not `model.train()`: some may have been told not to
            module.training = True


def flat_buffers(model: nn.Module) -> list[Tensor]:
    """Lays the model's buffers one after another and makes them views of that: one tensor a dtype, so that keeping or
    restoring all of BatchNorm's statistics is one operation and not one a layer."""
    flat = []
    for dtype in {buffer.dtype for buffer in model.buffers()}:
        buffers = [buffer for buffer in model.buffers() if buffer.dtype == dtype]
        flat.append(torch.cat([buffer.flatten() for buffer in buffers]))
        for buffer, part in zip(buffers, flat[-1].split([buffer.numel() for buffer in buffers])):
            buffer.data = part.view_as(buffer)
    return flat


def last_map(model: Backbone, first: Tensor, *given: Any, norm: AttentionNorm = "batch") -> Tensor:
    """The attention pass: the last map of a batch, without gradient and without a trace in the model; BatchNorm
    normalises by the batch, or by its running statistics, as in evaluation."""
    with torch.no_grad(), untracked(model) if norm == "batch" else evaluating(model):
        return model.trunk(first.detach(), *given).map
