"""The base of every backbone: stem -> trunk -> head, with the first map before the trunk and the last map in it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

Change = Callable[[Tensor, Callable[[], Tensor]], Tensor]  # gives a changed first map; the last one on demand
AttentionNorm = Literal["batch", "running"]  # what BatchNorm normalises by in the attention pass


class Features(NamedTuple):
    """Hold what a trunk gives."""

    map: Tensor  # B, c', h', w': the last map
    pooled: Tensor  # B, d: what the head sees


class Pixels(NamedTuple):
    """Say how pixels in [0, 1] are normalised, by channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def of(self, channels: int) -> "Pixels":
        """Return the same for images of so many channels: for grey ones the means over the channels."""
        grey = Pixels(*((sum(values) / len(values),) for values in self))
        return self if channels == len(self.mean) else grey


class Backbone(nn.Module):
    """The base class of backbones.

    `first = stem(x)` is a map (B, c, h, w); `trunk(first)` gives `Features`; `head(features)` gives logits. A trunk may
    take more than the map, such as a ViT's prefixes, but must also work without it.
    """

    finer: ClassVar[str] = "choose a finer --stem"  # advice where the last map is one cell

    pixels: Pixels | None = None  # how its weights want images normalised; None where the stream says so
    hooked = False  # are its maps seen by hooks? It then has no stem: `changed` and `maps` stand in for parts.
    own_kernels = False

    def use_own_kernels(self, wanted: bool) -> None:
        """Compute by our own GPU kernels where possible, or by torch's: here and in every layer below."""
        for module in self.modules():
            if hasattr(module, "own_kernels"):
                module.own_kernels = wanted  # type: ignore[assignment]

    def stem(self, x: Tensor) -> Tensor:
        """Return the first map (B, c, h, w) of normalised images."""
        raise NotImplementedError

    def trunk(self, first: Tensor, *given: Any) -> Features:
        """Return the last map and the pooled features for a first map."""
        raise NotImplementedError

    def head(self, features: Features) -> Tensor:
        """Return the logits (B, classes)."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.trunk(self.stem(x)))

    def features(self, x: Tensor) -> Features:
        """Return the last map and the pooled features of normalised images."""
        return self.trunk(self.stem(x))

    def changed(self, x: Tensor, change: Change, attention_pass: AttentionNorm | None) -> Tensor:
        """Return the logits of normalised images with the first map changed on its way, where it is `hooked`."""
        raise NotImplementedError

    def maps(self, x: Tensor, norm: AttentionNorm) -> tuple[Tensor, Tensor]:
        """Return the first and the last map of an attention pass, where it is `hooked`."""
        raise NotImplementedError

    __call__: Callable[..., Any]


@contextmanager
def untracked(model: nn.Module) -> Iterator[None]:
    """Keep BatchNorm's running statistics as they are; in training mode it normalises by the batch all the same."""
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
    """Put the model in eval mode, without gradients, and back at the end."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:  # not `model.train()`: some modules may be in eval mode on purpose
            module.training = True


def least_rows(model: Backbone, shape: tuple[int, int, int]) -> int:
    """Return the fewest images of a shape that a training pass may have: 2 where BatchNorm gets one value of an image.

    That is so where it follows a map of 1 x 1; of a single value per channel there is no variance.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, _BatchNorm)]
    values: list[int] = []  # of one image per channel, by layer

    def count(_: nn.Module, given: tuple[Tensor, ...]) -> None:
        values.append(given[0][:, 0].numel())

    hooks = [layer.register_forward_pre_hook(count) for layer in layers]
    if layers:
        with evaluating(model):
            model(torch.zeros(1, *shape, device=next(model.parameters()).device))
    for hook in hooks:
        hook.remove()
    return 2 if 1 in values else 1


def flat_buffers(model: nn.Module) -> list[Tensor]:
    """Lay out the buffers of a model as views of one tensor per dtype, and return these tensors.

    Saving or restoring all statistics of BatchNorm is then one operation instead of one per layer.
    """
    flat = []
    for dtype in {buffer.dtype for buffer in model.buffers()}:
        buffers = [buffer for buffer in model.buffers() if buffer.dtype == dtype]
        flat.append(torch.cat([buffer.flatten() for buffer in buffers]))
        for buffer, part in zip(buffers, flat[-1].split([buffer.numel() for buffer in buffers])):
            buffer.data = part.view_as(buffer)
    return flat


def last_map(model: Backbone, first: Tensor, *given: Any, norm: AttentionNorm = "batch") -> Tensor:
    """Run the attention pass: return the last map for a first map, without gradient and without a trace in the model.

    BatchNorm normalises by the batch ("batch") or by its running statistics ("running"), as in evaluation.
    """
    with torch.no_grad(), untracked(model) if norm == "batch" else evaluating(model):
        return model.trunk(first.detach(), *given).map
