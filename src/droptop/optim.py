"""SGD and Adam by torch's fused kernels: the same bits as torch.optim.SGD(fused=True) and torch.optim.Adam(fused=True).

To make an optimiser of torch's own imports all of torch.compile, which takes two seconds in every process. What a
learner needs of one is little: `state` by weight, `param_groups` for its learning rate, `zero_grad`, `step`, and
`found_inf`, by which a step is skipped on the device, where nobody has to wait for it.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


class Fused:
    def __init__(self, weights: Sequence[nn.Parameter], lr: float, weight_decay: float) -> None:
        self.param_groups: list[dict[str, Any]] = [{"params": list(weights), "lr": lr}]
        self.weight_decay = weight_decay
        self.state = {weight: self.beginning(weight) for weight in weights}
        self.found_inf: Tensor | None = None  # 1 where the step is to be skipped

    def zero_grad(self) -> None:
        for weight in self.state:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """A step of the weights that have a gradient, in one call a kind of number."""
        kinds: dict[torch.dtype, dict[nn.Parameter, Tensor]] = {}
        for weight in self.state:
            if weight.grad is not None:
                kinds.setdefault(weight.dtype, {})[weight] = weight.grad
        for gradients in kinds.values():
            self.advance(gradients)

    def beginning(self, weight: Tensor) -> dict[str, Tensor]:
        """A weight's state before the first step."""
        raise NotImplementedError

    def advance(self, gradients: dict[nn.Parameter, Tensor]) -> None:
        raise NotImplementedError

    def states(self, name: str, weights: dict[nn.Parameter, Tensor]) -> list[Tensor]:
        return [self.state[weight][name] for weight in weights]


class SGD(Fused):
    def __init__(
        self, weights: Sequence[nn.Parameter], lr: float, momentum: float = 0.0, weight_decay: float = 0.0
    ) -> None:
        self.momentum = momentum
        super().__init__(weights, lr, weight_decay)

    def beginning(self, weight: Tensor) -> dict[str, Tensor]:
        return {"momentum_buffer": torch.zeros_like(weight)} if self.momentum else {}

    def advance(self, gradients: dict[nn.Parameter, Tensor]) -> None:
        buffers = self.states("momentum_buffer", gradients) if self.momentum else []
        torch._fused_sgd_(
            list(gradients),
            list(gradients.values()),
            buffers,
            weight_decay=self.weight_decay,
            momentum=self.momentum,
            lr=self.param_groups[0]["lr"],
            dampening=0.0,
            nesterov=False,
            maximize=False,
            is_first_step=False,
            found_inf=self.found_inf,
        )


class Adam(Fused):
    def __init__(
        self,
        weights: Sequence[nn.Parameter],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        self.betas, self.eps = betas, eps
        super().__init__(weights, lr, weight_decay)

    def beginning(self, weight: Tensor) -> dict[str, Tensor]:
        return {
            "step": torch.zeros((), device=weight.device),
            "exp_avg": torch.zeros_like(weight),
            "exp_avg_sq": torch.zeros_like(weight),
        }

    def advance(self, gradients: dict[nn.Parameter, Tensor]) -> None:
        steps = self.states("step", gradients)
        torch._foreach_add_(steps, 1)
        torch._fused_adam_(
            list(gradients),
            list(gradients.values()),
            self.states("exp_avg", gradients),
            self.states("exp_avg_sq", gradients),
            [],
            steps,
            lr=self.param_groups[0]["lr"],
            beta1=self.betas[0],
            beta2=self.betas[1],
            weight_decay=self.weight_decay,
            eps=self.eps,
            amsgrad=False,
            maximize=False,
            found_inf=self.found_inf,
        )
        if self.found_inf is not None:
            torch._foreach_sub_(steps, [self.found_inf] * len(steps))
