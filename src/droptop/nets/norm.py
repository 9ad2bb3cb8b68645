"""BatchNorm with what follows it in a ResNet, an addition and ReLU: one kernel where our own are switched on."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from droptop.nets.kernel_choice import own_kernels


class Norm(nn.BatchNorm2d):
    """BatchNorm2d with torch's names for parameters and buffers, which can add and apply ReLU in the same kernel."""

    own_kernels = False  # `Backbone.use_own_kernels` switches them on

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.num_batches_tracked = None  # only a momentum of None reads it, and counting costs a kernel per layer

    def forward(self, x: Tensor) -> Tensor:
        return self.fused(x) if self.fuses(x) else super().forward(x)

    def relu(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """Return relu(norm(x) + add)."""
        if self.fuses(x) and not self.hooked:
            return self.fused(x, add, relu=True)
        y = self(x)
        return F.relu(y if add is None else y + add)

    @property
    def hooked(self) -> bool:
        """Return whether the layer has hooks, which must see its own input and output."""
        return bool(self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks)

    def fuses(self, x: Tensor) -> bool:
        """Return whether our own kernels are switched on and can take x."""
        if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
            return False
        return (
            self.own_kernels
            and x.is_cuda
            and x.dtype in (torch.float32, torch.bfloat16, torch.float16)
            and x.is_contiguous(memory_format=torch.channels_last)
            and x.numel() > self.num_features
            and own_kernels() is not None
        )

    def fused(self, x: Tensor, add: Tensor | None = None, relu: bool = False) -> Tensor:
        """Compute norm(x), with an addend and ReLU on demand, by our own kernels."""
        from droptop.nets.kernels import NormAddReLU

        if add is not None:
            add = add.contiguous(memory_format=torch.channels_last)
        out: Tensor = NormAddReLU.apply(
            x,
            self.weight,
            self.bias,
            add,
            self.running_mean,
            self.running_var,
            self.training,
            self.training and self.track_running_stats,
            self.momentum,
            self.eps,
            relu,
        )
        return out
