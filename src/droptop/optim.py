"""SGD and Adam by torch's fused kernels: the same bits as torch.optim.SGD(fused=True) and torch.optim.Adam(fused=True).

Making one of torch's own optimisers imports all of torch.compile, which takes two seconds in every process. A learner
needs little of an optimiser: `state` by weight, `param_groups` for its learning rate, `zero_grad`, `step`, and
`found_inf`, which skips a step on the device, so that the host need not wait.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from droptop.system.devices import skips_steps


class Fused:
    """An optimiser that has all of its state before the first step, and can skip a step on the device."""

    def __init__(self, weights: Sequence[nn.Parameter], lr: float, weight_decay: float) -> None:
        self.param_groups: list[dict[str, Any]] = [{"params": list(weights), "lr": lr}]
        self.weight_decay = weight_decay
        self.state = {weight: self.initial_state(weight) for weight in weights}
        self.found_inf: Tensor | None = None  # 1 to skip the step; torch's kernels know it by this name

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for weight in self.state:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights that have a gradient, with one kernel call per dtype."""
        by_dtype: dict[torch.dtype, dict[nn.Parameter, Tensor]] = {}
        for weight in self.state:
            if weight.grad is not None:
                by_dtype.setdefault(weight.dtype, {})[weight] = weight.grad
        for gradients in by_dtype.values():
            if self.found_inf is None or skips_steps(self.found_inf.device):
                self.advance(gradients)
            else:
                self.advance_or_undo(gradients, self.found_inf)

    @torch.no_grad()
    def renew(self) -> None:
        """Forget every earlier step: the state of each weight becomes what it was before the first one, in place."""
        for weight, state in self.state.items():
            for name, value in self.initial_state(weight).items():
                state[name].copy_(value)

    def initial_state(self, weight: Tensor) -> dict[str, Tensor]:
        """Return the state of a weight before the first step."""
        raise NotImplementedError

    def advance(self, gradients: dict[nn.Parameter, Tensor]) -> None:
        """Update weights of one dtype, given with their gradients."""
        raise NotImplementedError

    def advance_or_undo(self, gradients: dict[nn.Parameter, Tensor], undo: Tensor) -> None:
        """Update weights where torch's kernels cannot skip a step: put back what was there if it is to be skipped."""
        changing = [tensor for weight in gradients for tensor in (weight, *self.state[weight].values())]
        before = [tensor.clone() for tensor in changing]
        self.found_inf = None
        self.advance(gradients)
        self.found_inf = undo
        for tensor, old in zip(changing, before):
            tensor.copy_(torch.where(undo > 0, old, tensor))

    def states(self, name: str, weights: dict[nn.Parameter, Tensor]) -> list[Tensor]:
        """Return one part of the state of these weights, in their order."""
        return [self.state[weight][name] for weight in weights]


class SGD(Fused):
    """Stochastic gradient descent with momentum and weight decay, as torch.optim.SGD has them."""

    def __init__(
        self, weights: Sequence[nn.Parameter], lr: float, momentum: float = 0.0, weight_decay: float = 0.0
    ) -> None:
        self.momentum = momentum
        super().__init__(weights, lr, weight_decay)

    def initial_state(self, weight: Tensor) -> dict[str, Tensor]:
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
    """Adam (Kingma and Ba, 2015) with L2 weight decay, as torch.optim.Adam has it."""

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

    def initial_state(self, weight: Tensor) -> dict[str, Tensor]:
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
        if self.found_inf is not None:  # a skipped step is not counted
            torch._foreach_sub_(steps, [self.found_inf] * len(steps))
