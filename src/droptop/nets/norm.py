"""BatchNorm with what follows it in a ResNet: an addend and ReLU, on a GPU in one go where somebody asks for it.

Kernels of our own take less of a GPU's time than torch's, but more of Python's to be launched, so that they pay where
steps are captured and replayed. The engine asks for them; a loop of one's own gets torch's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_wanted: ContextVar[bool] = ContextVar("fused kernels are wanted", default=False)


@contextmanager
def fusing() -> Iterator[None]:
    """Within it, forward passes are by our own kernels where they can be."""
    token = _wanted.set(True)
    try:
        yield
    finally:
        _wanted.reset(token)


class Norm(nn.BatchNorm2d):
    """torch's BatchNorm2d; its parameters and buffers have the same names."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.num_batches_tracked = None  # only a momentum of None reads it, and it costs a kernel a layer

    def forward(self, x: Tensor) -> Tensor:
        return self.fused(x) if self.fuses(x) else super().forward(x)

    def relu(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """relu(norm(x) + add)"""
        if self.fuses(x) and not self._forward_hooks:  # whoever hooks a layer wants what it gives, not what follows
            return self.fused(x, add, relu=True)
        y = self(x)
        return F.relu(y if add is None else y + add)

    def fuses(self, x: Tensor) -> bool:
        """Are the kernels wanted, and can they do it?"""
        return (_wanted.get() and x.is_cuda and x.dtype in (torch.float32, torch.bfloat16, torch.float16)
                and x.is_contiguous(memory_format=torch.channels_last) and x.numel() > self.num_features
                and not torch.compiler.is_compiling() and kernels() is not None)

    def fused(self, x: Tensor, add: Tensor | None = None, relu: bool = False) -> Tensor:
        if add is not None:
            add = add.contiguous(memory_format=torch.channels_last)
        out: Tensor = kernels().NormAddReLU.apply(
            x, self.weight, self.bias, add, self.running_mean, self.running_var, self.training,
            self.training and self.track_running_stats, self.momentum, self.eps, relu)
        return out


@cache
def kernels() -> Any:
    """The module of kernels, where Triton is there."""
    try:
        from droptop.nets import kernels
    except ImportError:
        return None
    return kernels
