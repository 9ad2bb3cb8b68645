"""The base of methods that train nothing: a frozen net, and a classifier computed from statistics of its features.

Every image of the stream is passed through the net once, and its features are added to sums of fixed size. Nothing is
forgotten, no order matters but for rounding, and there is no memory. The classifier is computed from the sums before an
evaluation. The loss that a step reports is not minimised: one minus the cosine of features and the mean of their class
before the step, 1 for a class that has just come.

What debiasing can act on: the images (`colour`, `randconv`) and the first map (`droptop`, `mixstyle`), whose changed
features are then summed. It cannot teach the net to look elsewhere. Without a memory DropTop's intensities stay at
kappa_0. Refused: `rsc`, `decouple` and `poe`, which take logits (a recipe such as `robust` goes without them), and
`--reference`, which takes training. Averaged weights (`--average`) are the weights themselves; learning rate, memory
and replay have no effect. With `--iterations` every image counts so often, each time changed anew.

Cost of a step: one forward of the stream's rows, a sixth of ER's passes; no backward.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from droptop.debias import Chosen
from droptop.errors import BadRequest
from droptop.learner import Learner, LearnerConfig
from droptop.memory import Rows
from droptop.nets import Backbone, ViTConfig
from droptop.nets.heads import Computed
from droptop.optim import SGD
from droptop.system.devices import widest
from droptop.types import Spec


class Frozen(Learner):
    """Sums of frozen features by class. A method adds to `learn` what else it sums, and to `refresh` its classifier."""

    net_type = ViTConfig
    has_logits = False
    model: Computed

    def __init__(
        self,
        model: Backbone,
        spec: Spec,
        config: LearnerConfig,
        debias: Sequence[Chosen] = (),
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        computed, config = self.computed(model, spec, config, seed), dataclasses.replace(config, average=False)
        super().__init__(computed, spec, config, debias, seed=seed, device=device)
        self.counts, self.sums = self.zeros(len(spec.classes)), self.zeros(len(spec.classes), computed.width)

    def computed(self, net: Backbone, spec: Spec, config: Any, seed: int) -> Computed:
        """Return the net, and a classifier to be computed."""
        return Computed(net, spec.shape, len(spec.classes))

    @classmethod
    def presets(cls, stream: dict[str, Any]) -> dict[str, Any]:
        """Give the default options: the stream's, without those for a ResNet, and images as they are."""
        return {name: value for name, value in stream.items() if name not in ("width", "stem")} | {"augment": "none"}

    def zeros(self, *shape: int) -> Tensor:
        """Return an empty sum."""
        return torch.zeros(shape, dtype=widest(self.device), device=self.device)

    # -- Learning ------------------------------------------------------------------------------------------------

    memory_batches = 0

    def passes(self, rows: int) -> list[int]:
        return [rows]

    @torch.no_grad()
    def step(self, x: Tensor, y: Tensor) -> Tensor:
        """Add the features of a batch to the sums; return how far they are from the means before, on the device."""
        stream = self.arrive(x, y)
        batch = self.joined(stream, {name: rows[:0] for name, rows in stream.items()})
        guarded = self.debias.guarded()
        before = [tensor.clone() for tensor in guarded]
        passes = []
        for _ in range(self.config.iterations):
            self.show(batch)
            passes.append(self.forward(self.model, self.prepare(batch.x), batch, 0))
        features, labels = torch.cat(passes).to(self.sums.dtype), y.repeat(len(passes))
        loss = (1 - F.cosine_similarity(features, self.sums[labels])).mean()
        self.finite &= loss.isfinite()
        for tensor, old in zip(guarded, before):
            tensor.copy_(torch.where(self.finite, tensor, old))
        self.learn(torch.where(self.finite, features, 0), labels, self.finite.to(features.dtype))
        self.seen |= torch.zeros_like(self.seen).index_fill(0, y, True) & self.finite
        return loss.float()

    def learn(self, features: Tensor, labels: Tensor, one: Tensor) -> None:
        """Add features (B, d) to the sums; where the step is not to count, they are 0, and so is `one`."""
        self.sums.index_add_(0, labels, features)
        self.counts.index_add_(0, labels, one.expand(len(labels)))

    def means(self) -> Tensor:
        """Return the mean features of each class (classes, d); zero where it has not been seen."""
        return self.sums / self.counts.clamp(min=1)[:, None]

    def remember(self, stream: Rows) -> None:
        """Keep nothing."""

    def probe(self) -> None:
        """Leave the intensities: without a memory there is no loss by which they could adapt."""

    def make_optimizer(self, weights: list[torch.nn.Parameter]) -> SGD:
        """Return one that has nothing to do."""
        return SGD(weights, self.config.lr)

    def check_maps(self) -> None:
        """Raise BadRequest, also for two models that train in different directions, of which none trains."""
        super().check_maps()
        if len(self.replicas) > 1:
            raise BadRequest(f"--reference takes a method that trains its net: that of {type(self).__name__} is frozen")
