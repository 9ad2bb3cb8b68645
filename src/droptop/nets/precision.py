"""The precision that a backbone computes in; its weights are float32 in any case.

    fp32   exact products
    tf32   products of inputs rounded to 10 bits on the GPU's matrix units, sums in float32
           (fp32 and tf32 are told apart by switches of the whole process: `allow_tf32`)
    bf16   autocast: convolutions and products in bfloat16; statistics, losses and weights in float32

Autocast alone casts every weight separately, forward and back: some fifty kernels of a few microseconds per step. Here
the weights of a part (stem, trunk, head) are cast together, in one multi-tensor kernel each way. A net of a library has
no such parts: it computes under autocast as a whole.

`compute_in` sets functions of the instance in front of its methods: a module around the backbone would rename every
tensor of its state_dict, and a table of functions in the base class would make every backbone, also a user's, define
its parts under other names.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from droptop.nets.backbone import Backbone, Features, evaluating
from droptop.system.devices import is_cuda

Precision = Literal["fp32", "tf32", "bf16"]
PARTS = ("stem", "trunk", "head")
WHOLE = ("forward", "changed", "features", "maps")  # of a net without parts, whose maps are seen by hooks
REPLACED = PARTS + WHOLE


class _CastAll(torch.autograd.Function):
    """Cast weights to bfloat16, and their gradients back to float32."""

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


def allow_tf32(device: str, precision: Precision) -> None:
    """Set whether a GPU may round products to TF32: for all that this process computes.

    So it is for the processes of commands, and not called where users build learners beside models of their own.
    """
    if is_cuda(device):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"


def compute_in(model: Backbone, shape: tuple[int, int, int], precision: Precision, compiled: bool = False) -> None:
    """Make the parts of a backbone compute in a precision and, if `compiled`, through `torch.compile`.

    `shape` is that of the images it will be given. Whether float32 is rounded to TF32 is left as it is.
    """
    device = next(model.parameters()).device
    if precision != "bf16" and not compiled:
        return
    if model.hooked:
        for way in WHOLE:
            vars(model)[way] = _autocast(getattr(model, way), device.type)
        return
    layers = _layers(model, torch.zeros(1, *shape, device=device))
    for part in PARTS:
        function: Callable[..., Any] = getattr(model, part)
        if compiled and part != "head":
            function = _compiled(model, part)
        if precision == "bf16":
            function = _lowered(function, layers[part], device.type)
        vars(model)[part] = function  # found before the method; setattr refuses a ViT's "head", also a layer


def is_replaced(model: Backbone) -> bool:
    """Return whether `compute_in` has set functions in front of a model's methods."""
    return not vars(model).keys().isdisjoint(REPLACED)


def restore(model: Backbone) -> None:
    """Take away what `compute_in` has set: the model computes in float32 again, uncompiled."""
    for way in REPLACED:
        vars(model).pop(way, None)


def _autocast(function: Callable[..., Any], device: str) -> Callable[..., Any]:
    """Return a way through a net under autocast that gives float32, or what is wider."""

    def run(*args: Any) -> Any:
        with torch.autocast(device, torch.bfloat16):
            result = function(*args)
        if isinstance(result, Features):
            return Features(result.map, _widened(result.pooled))
        return _widened(result) if isinstance(result, Tensor) else result

    return run


def _widened(tensor: Tensor) -> Tensor:
    """Return a tensor of half precision in float32, and others as they are: a frozen net's statistics are float64."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def _layers(model: Backbone, x: Tensor) -> dict[str, list[nn.Conv2d | nn.Linear]]:
    """Return the convolutions and linear layers that each part calls, by running it on x."""
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
    """Return a part that runs with its layers' weights in bfloat16, and gives pooled features and logits in float32.

    Layers of which nothing is trained are cast once, here.
    """
    parameters = [(layer._parameters, name, weight) for layer in layers for name, weight in layer._parameters.items()]
    places = [(held, name) for held, name, weight in parameters if weight is not None]
    weights = tuple(weight for _, _, weight in parameters if weight is not None)
    trained = any(weight.requires_grad for weight in weights)
    frozen = _cast(weights, torch.bfloat16) if weights and not trained else None

    def run(*args: Any) -> Any:
        kept = [held[name] for held, name in places]
        for (held, name), weight in zip(places, (frozen or _CastAll.apply(*kept)) if kept else ()):
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


_COMPILED: dict[
    tuple[type, str], Callable[..., Any]
] = {}  # one per class of models: weights are arguments of compiled code


def _compiled(model: Backbone, part: str) -> Callable[..., Any]:
    cls = type(model)
    if (cls, part) not in _COMPILED:
        _COMPILED[cls, part] = torch.compile(getattr(cls, part), dynamic=False)
    return lambda *args: _COMPILED[cls, part](model, *args)
