"""What a backbone is computed in, whatever its weights are kept in: float32, TF32 products, or bfloat16.

    fp32   exact products
    tf32   products of inputs rounded to 10 bits on the GPU's matrix units, sums in float32
    bf16   autocast: convolutions and products in bfloat16, statistics, losses and weights in float32

Autocast alone casts every weight by itself, forward and back, some fifty kernels of a few microseconds a step. Here
the weights of a part (stem, trunk, head) are cast together, in one multi-tensor kernel each way.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from droptop.nets.backbone import Backbone, Features, evaluating

Precision = Literal["fp32", "tf32", "bf16"]
PARTS = ("stem", "trunk", "head")


class _CastAll(torch.autograd.Function):
    """Weights in bfloat16, and their gradients back in float32."""

    @staticmethod
    def forward(_: Any, *weights: Tensor) -> tuple[Tensor, ...]:
        return _cast(weights, torch.bfloat16)

    @staticmethod
    def backward(_: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return _cast(gradients, torch.float32)


def _cast(tensors: tuple[Tensor, ...], dtype: torch.dtype) -> tuple[Tensor, ...]:
    cast = tuple(torch.empty_like(tensor, dtype=dtype) for tensor in tensors)
    torch._foreach_copy_(cast, tensors)
    return cast


def compute_in(model: Backbone, shape: tuple[int, int, int], precision: Precision, compiled: bool = False) -> None:
    """Makes the parts of a backbone for images of this shape compute in a precision, and through `torch.compile`."""
    device = next(model.parameters()).device
    if device.type == "cuda":  # the switch is the process's own
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
    if precision != "bf16" and not compiled:
        return
    layers = _layers(model, torch.zeros(1, *shape, device=device))
    for part in PARTS:
        function: Callable[..., Any] = getattr(model, part)
        if compiled and part != "head":
            function = _compiled(model, part)
        if precision == "bf16":
            function = _lowered(function, layers[part], device.type)
        vars(model)[part] = function  # in front of the method or layer of that name


def _layers(model: Backbone, x: Tensor) -> dict[str, list[nn.Conv2d | nn.Linear]]:
    """The convolutions and linear layers that each part calls."""
    called: dict[str, list[nn.Conv2d | nn.Linear]] = {part: [] for part in PARTS}
    for part in PARTS:
        hooks = [
            layer.register_forward_hook(lambda layer, *_, part=part: called[part].append(layer))
            for layer in model.modules()
            if isinstance(layer, nn.Conv2d | nn.Linear)
        ]
        with evaluating(model):
            x = getattr(model, part)(x)
        for hook in hooks:
            hook.remove()
    return {part: list(dict.fromkeys(layers)) for part, layers in called.items()}


def _lowered(function: Callable[..., Any], layers: list[nn.Conv2d | nn.Linear], device: str) -> Callable[..., Any]:
    """A part with its layers' weights and biases swapped for bfloat16 ones while it runs, and results to reckon with in
    float32. Those that are not trained are cast once and for all."""
    found = [(layer._parameters, name, weight) for layer in layers for name, weight in layer._parameters.items()]
    places = [(held, name) for held, name, weight in found if weight is not None]
    weights = tuple(weight for _, _, weight in found if weight is not None)
    frozen = None if any(weight.requires_grad for weight in weights) else _cast(weights, torch.bfloat16)

    def run(*args: Any) -> Any:
        kept = [held[name] for held, name in places]
        for (held, name), weight in zip(places, frozen or _CastAll.apply(*kept)):
            held[name] = weight
        try:
            with torch.autocast(device, torch.bfloat16):
                result = function(*args)
        finally:
            for (held, name), weight in zip(places, kept):
                held[name] = weight
        if isinstance(result, Features):
            return Features(result.map, result.pooled.float())
        return result.float() if result.dim() == 2 else result

    return run


_COMPILED: dict[tuple[type, str], Callable[..., Any]] = {}  # one for all models of a kind: weights are its arguments


def _compiled(model: Backbone, part: str) -> Callable[..., Any]:
    kind = type(model)
    if (kind, part) not in _COMPILED:
        _COMPILED[kind, part] = torch.compile(getattr(kind, part), dynamic=False)
    return lambda *args: _COMPILED[kind, part](model, *args)
