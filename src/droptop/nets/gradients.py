"""Gradients of many groups of samples from one forward and one backward pass.

A layer's gradient is what came in times the gradient of what went out, summed over samples and positions: summed over
the samples of a group alone it is that group's. BatchNorm must be in eval mode, or no sample has a gradient of its own.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Passed(NamedTuple):
    """A layer that a batch went through."""

    layer: nn.Module
    entered: Tensor
    left: Tensor  # the gradient of what left it


def passed(model: nn.Module, x: Tensor, loss: Callable[[Tensor], Tensor], overwrites: bool = False) -> list[Passed]:
    """The layers that have weights, in the order in which `x` goes through them, with the gradients of `loss`. A model
    that `overwrites` what a layer gave (`nn.ReLU(inplace=True)`) is given a copy to write into."""
    seen: list[tuple[nn.Module, Tensor, Tensor]] = []

    def note(layer: nn.Module, entered: Any, left: Tensor) -> Tensor | None:
        seen.append((layer, entered[0].detach(), left))
        return left.clone() if overwrites else None

    layers = [layer for layer in model.modules() if layer._parameters]
    hooks = [layer.register_forward_hook(note) for layer in layers]
    try:
        with torch.enable_grad():
            gradients = torch.autograd.grad(loss(model(x)), [left for _, _, left in seen])
    finally:
        for hook in hooks:
            hook.remove()
    return [Passed(layer, entered, gradient) for (layer, entered, _), gradient in zip(seen, gradients)]


def has_gradients_of_groups(layer: nn.Module) -> bool:
    """Does `group_gradients` know this kind of layer?"""
    if isinstance(layer, nn.Conv2d):
        return layer.groups == 1 and layer.dilation == (1, 1) and not isinstance(layer.padding, str)
    return isinstance(layer, nn.Linear | nn.BatchNorm2d)


def group_gradients(at: Passed, rows: slice, groups: int) -> Iterator[Tensor]:
    """For every weight of a layer the gradient (groups, weights) of equally many of the rows each.

    Legend: g groups of n rows; c channels enter, o leave, at h x w positions; i x j the kernel. The order of a kernel's
    weights is (o, i, j, c), in which images laid out channels last are copied as they lie.
    """
    entered, left = (part[rows].unflatten(0, (groups, -1)).to(at.left.dtype) for part in (at.entered, at.left))
    layer = at.layer
    assert has_gradients_of_groups(layer), type(layer)
    if isinstance(layer, nn.Conv2d):
        (down, along), kernel, padding = layer.stride, layer.kernel_size, layer.padding
        assert not isinstance(padding, str)
        top, side = padding
        entered = entered.movedim(2, -1)
        padded = F.pad(entered, (0, 0, side, side, top, top)) if top or side else entered
        patches = padded.unfold(2, kernel[0], down).unfold(3, kernel[1], along)
        yield torch.einsum("gnohw,gnhwcij->goijc", left, patches).flatten(1)
        if layer.bias is not None:
            yield left.sum((1, 3, 4))
    elif isinstance(layer, nn.Linear):
        yield torch.einsum("gno,gni->goi", left, entered).flatten(1)
        if layer.bias is not None:
            yield left.sum(1)
    else:
        assert isinstance(layer, nn.BatchNorm2d)
        assert layer.running_mean is not None
        assert layer.running_var is not None
        total, weighted = (part.sum((1, 3, 4), dtype=torch.float32) for part in (left, left * entered))
        yield (weighted - total * layer.running_mean) * (layer.running_var + layer.eps).rsqrt()
        yield total
