"""Gradients of many groups of samples from one forward and one backward pass.

The gradient of a layer's weights is the input times the gradient of the output, summed over samples and positions;
summed over the samples of one group only, it is the gradient of that group. BatchNorm must be in eval mode: otherwise
the loss of a sample depends on the others, and no sample has a gradient of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from droptop.errors import BadRequest
from droptop.nets import kernel_choice
from droptop.nets.norm import Norm
from droptop.nets.resnet import Downsample


class RowGroups(NamedTuple):
    """Count rows of a batch that fall into groups of one size."""

    groups: int
    rows: int  # per group


class LayerPass(NamedTuple):
    """Hold a layer that a batch went through, with its input and the gradient of its output."""

    layer: nn.Module
    entered: Tensor
    left: Tensor  # the gradient of what left it


def layer_passes(
    model: nn.Module, x: Tensor, loss: Callable[[Tensor], Tensor], overwrites: bool = False
) -> list[LayerPass]:
    """Return the trained layers in the order in which `x` goes through them, with the gradients of `loss`.

    A model that `overwrites` the output of a layer (`nn.ReLU(inplace=True)`) is given a copy to write into.
    """
    with watched(model, overwrites) as seen, torch.enable_grad():
        result = loss(model(x))
        gradients = torch.autograd.grad(result, [left for _, _, left in seen])
    return [LayerPass(layer, entered, gradient) for (layer, entered, _), gradient in zip(seen, gradients)]


@contextmanager
def watched(model: nn.Module, overwrites: bool = False) -> Iterator[list[tuple[nn.Module, Tensor, Tensor]]]:
    """Record the trained layers in the order in which they are called, with what enters and what leaves them."""
    seen: list[tuple[nn.Module, Tensor, Tensor]] = []

    def note(layer: nn.Module, entered: Any, left: Tensor) -> Tensor | None:
        seen.append((layer, entered[0].detach(), left))
        return left.clone() if overwrites else None

    hooks = [layer.register_forward_hook(note) for layer in model.modules() if is_trained(layer)]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def check_model(model: nn.Module, image: Tensor) -> None:
    """Raise BadRequest if the gradients of groups would be wrong for the layers of a model or the way it calls them."""
    for name, layer in model.named_modules():
        if is_trained(layer) and not has_gradients_of_groups(layer):
            raise BadRequest(
                f"--method gss takes a model of plain Conv2d, Linear and BatchNorm2d layers, not {name} "
                f"({type(layer).__name__})"
            )
    for rows in (1, 2):  # twice, since a first dimension of positions may by chance be as long as the batch
        with watched(model) as seen:
            model(image.expand(rows, *image.shape))
        weights = [weight for layer, _, _ in seen for weight in layer._parameters.values() if weight is not None]
        if len(set(weights)) < len(weights):
            raise BadRequest("--method gss takes a model that uses each of its layers once")
        if any(len(left) != rows for _, _, left in seen):
            raise BadRequest("--method gss takes a model whose layers keep the samples of a batch apart, in rows")


def is_trained(layer: nn.Module) -> bool:
    """Return whether the layer itself, not only its children, has weights that are trained."""
    return any(weight is not None and weight.requires_grad for weight in layer._parameters.values())


def has_gradients_of_groups(layer: nn.Module) -> bool:
    """Return whether `group_gradients` can handle this layer, all of whose weights must be trained."""
    if not all(weight is None or weight.requires_grad for weight in layer._parameters.values()):
        return False
    if computes_otherwise(layer):
        return False
    if isinstance(layer, nn.Conv2d):
        plain = layer.groups == 1 and layer.dilation == (1, 1) and layer.padding_mode == "zeros"
        return plain and not isinstance(layer.padding, str)
    return isinstance(layer, nn.Linear) or (isinstance(layer, nn.BatchNorm2d) and layer.track_running_stats)


def computes_otherwise(layer: nn.Module) -> bool:
    """Return whether the class of a layer is derived from torch's and computes something else, such as an activation.

    Those of droptop's own compute the same.
    """
    if isinstance(layer, Norm | Downsample):
        return False
    kinds = [kind for kind in (nn.Conv2d, nn.Linear, nn.BatchNorm2d) if isinstance(layer, kind)]
    return any(type(layer).forward is not kind.forward for kind in kinds)


def group_gradients(at: LayerPass, parts: Sequence[RowGroups], own_kernels: bool = False) -> Iterator[Tensor]:
    """Yield, for every weight of a layer, its gradient by group of rows (groups, numbers of the weight).

    The numbers of a convolution's kernel are in the order (o, i, j, c), which suits images laid out channels last.

    Legend: c channels enter, o leave; i x j the kernel.
    """
    layer, entered, left = at.layer, at.entered.to(at.left.dtype), at.left
    assert has_gradients_of_groups(layer), type(layer)
    if isinstance(layer, nn.Conv2d):
        yield grouped_products(left.flatten(2).transpose(1, 2), patches(entered, layer, own_kernels), parts)
        if layer.bias is not None:
            yield grouped_sums(left.sum((2, 3), dtype=torch.float32), parts)
    elif isinstance(layer, nn.Linear):
        left, entered = positions(left), positions(entered)
        yield grouped_products(left, entered, parts)
        if layer.bias is not None:
            yield grouped_sums(left.sum(1, dtype=torch.float32), parts)
    else:
        assert isinstance(layer, nn.BatchNorm2d)
        assert layer.running_mean is not None
        assert layer.running_var is not None
        total, weighted = (
            grouped_sums(part.sum((2, 3), dtype=torch.float32), parts) for part in (left, left * entered)
        )
        yield (weighted - total * layer.running_mean) * (layer.running_var + layer.eps).rsqrt()
        yield total


def positions(x: Tensor) -> Tensor:
    """Return x as rows, positions, numbers; without positions in it, there is one per row."""
    return x[:, None] if x.dim() == 2 else x.flatten(1, -2)


def patches(x: Tensor, layer: nn.Conv2d, own_kernels: bool = False) -> Tensor:
    """Return what a convolution sees at each position: rows, positions, (i, j, c)."""
    assert not isinstance(layer.padding, str)
    if own_kernels and x.is_cuda and (fast := kernel_choice.own_kernels()) is not None:
        result: Tensor = fast.patches(x, layer.kernel_size, layer.stride, layer.padding)
        return result
    top, side = layer.padding
    padded = F.pad(x, (side, side, top, top)) if top or side else x
    cut = padded.unfold(2, layer.kernel_size[0], layer.stride[0]).unfold(3, layer.kernel_size[1], layer.stride[1])
    return cut.permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)


def grouped_products(left: Tensor, entered: Tensor, parts: Sequence[RowGroups]) -> Tensor:
    """Return the products (groups, o * e) of (rows, positions, o) and (rows, positions, e), summed by group."""
    groups = [part.groups for part in parts]
    out = left.new_empty(sum(groups), left.shape[2], entered.shape[2])
    rows = [part.groups * part.rows for part in parts]
    for count, into, a, b in zip(groups, out.split(groups), left.split(rows), entered.split(rows)):
        torch.bmm(a.reshape(count, -1, a.shape[2]).transpose(1, 2), b.reshape(count, -1, b.shape[2]), out=into)
    return out.flatten(1)


def grouped_sums(values: Tensor, parts: Sequence[RowGroups]) -> Tensor:
    """Return the sums of rows within each group (groups, ...)."""
    split = values.split([part.groups * part.rows for part in parts])
    return torch.cat([rows.unflatten(0, (part.groups, part.rows)).sum(1) for part, rows in zip(parts, split)])


def gram(vectors: Tensor) -> Tensor:
    """Return the inner products of all pairs of vectors, in float32."""
    if vectors.is_cuda and vectors.dtype != torch.float32:
        return torch.mm(vectors, vectors.T, out_dtype=torch.float32)
    return vectors.float() @ vectors.float().T
