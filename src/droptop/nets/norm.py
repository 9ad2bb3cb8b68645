"""BatchNorm with what follows it in a ResNet: an addend and ReLU, in one go where our own kernels are asked for."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from droptop.nets.kernel_choice import own_kernels


class Norm(nn.BatchNorm2d):
    """torch's BatchNorm2d; its parameters and buffers have the same names."""

    own_kernels = False  # `Backbone.use_own_kernels` switches them on

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.num_batches_tracked = None  # only a momentum of None reads it, and it costs a kernel a layer

    def forward(self, x: Tensor) -> Tensor:
        return self.fused(x) if self.fuses(x) else super().forward(x)

    def relu(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """relu(norm(x) + add)"""
        if self.fuses(x) and not self.hooked:
            return self.fused(x, add, relu=True)
        y = self(x)
        return F.relu(y if add is None else y + add)

    @property
    def hooked(self) -> bool:
        """Does somebody want to see what the layer is given or gives, and not what follows?"""
        return bool(self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks)

    def fuses(self, x: Tensor) -> bool:
        """Are the kernels wanted, and can they do it?"""
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
