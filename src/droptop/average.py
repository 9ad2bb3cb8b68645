"""Averaged weights, which predict in place of the weights that are trained.

    average += (weights - average) * max(9 / (10 + n), 1 - decay)    after step n = 0, 1, 2, ...

An online learner takes large steps to the end, since nobody tells it when the stream is over; the average of its last
steps is a better model than the last of them. A plain exponential average lags behind for its first 1 / (1 - decay)
steps, which costs the first tasks: so it begins with a window of a ninth of the steps so far. BatchNorm's statistics
are those of training. (Polyak and Juditsky, 1992; Tarvainen and Valpola, 2017.)
"""

import copy

import torch
from torch import Tensor

from droptop.nets.backbone import Backbone
from droptop.system.devices import widest

WINDOW = 9.0  # the average spans the last 1 / WINDOW of the steps, until 1 - decay is more


class Average:
    """Hold a copy of a model with averaged weights; it shares buffers and frozen weights with the model."""

    def __init__(self, model: Backbone, decay: float) -> None:
        self.decay = decay
        self.weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        shared = [*model.buffers(), *(weight for weight in model.parameters() if not weight.requires_grad)]
        self.model = copy.deepcopy(model, {id(tensor): tensor for tensor in shared})
        # They stay marked as trained: what is frozen is cast to bfloat16 once, and never looked at again.
        self.averages = {name: weight for name, weight in self.model.named_parameters() if name in self.weights}
        device = next(model.parameters()).device
        self.steps = torch.zeros((), dtype=widest(device), device=device)

    @torch.no_grad()
    def update(self, finite: Tensor) -> None:
        """Move the averages towards the weights; not where `finite` is false, as the step was then undone."""
        share = (WINDOW / (WINDOW + 1 + self.steps)).clamp(min=1 - self.decay) * finite
        averages: list[Tensor] = list(self.averages.values())
        change = torch._foreach_sub([weight.detach() for weight in self.weights.values()], averages)
        torch._foreach_mul_(change, share.float())
        torch._foreach_add_(averages, change)
        self.steps += finite

    def state_dict(self) -> dict[str, Tensor]:
        """Return the averages by the names of their weights, and the number of steps."""
        return {name: average.detach() for name, average in self.averages.items()} | {"steps": self.steps}
