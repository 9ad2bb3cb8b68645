"""Product of experts with a weak net (Clark et al., EMNLP 2019; Sanh et al., ICLR 2021): leave to it what it can tell.

    loss' = cross-entropy of (logits + weight * log of what the weak net believes)

A small net of two convolutions sees the same images and labels. A mark, a frame or a text that gives the class away is
what it learns first. Where it is sure and right, the product is right already and the learner is taught next to
nothing; where it is sure and wrong, on the few images that contradict the shortcut, the learner is taught all the more.
The learner predicts alone. Nobody need know what the cue is, but some images must contradict it.

The weak net answers before it trains on a batch, sees images at 32 x 32 in three channels, and has a fixed size: its
cost counts for little beside a net for photographs.
"""

from dataclasses import dataclass
from math import prod, sqrt

import torch
import torch.nn.functional as F
from torch import Tensor

from droptop.debias.debiaser import Debiaser
from droptop.errors import BadBatch, require

SIDE, MOMENTUM = 32, 0.9


@dataclass(frozen=True)
class PoEConfig:
    """Hold the settings of the product of experts."""

    weight: float = 1.0
    """Weight of what the weak net believes: with more, less is left to the learner of what both can tell."""
    rate: float = 0.005
    """Learning rate of the weak net."""
    rounds: int = 3
    """Steps that the weak net takes on each batch: it is to be faster than the learner."""

    def __post_init__(self) -> None:
        require(0 <= self.weight < float("inf"), "poe.weight", "a number from 0", self.weight)
        require(0 < self.rate <= 1, "poe.rate", "a number above 0 and up to 1", self.rate)
        require(self.rounds >= 1, "poe.rounds", "a number from 1", self.rounds)


def small(images: Tensor) -> Tensor:
    """Return images (B, c, h, w) of any size as (B, 3, 32, 32), each channel with mean 0 and deviation 1 in the batch.

    Gray images are repeated; of more than three channels, neighbours are averaged.
    """
    x = images.float().to("cpu" if images.device.type == "mps" else images.device)  # which pools by whole factors alone
    x = F.adaptive_avg_pool2d(x, SIDE)
    x = F.adaptive_avg_pool1d(x.flatten(2).mT, 3).mT.unflatten(2, (SIDE, SIDE)).to(images.device)
    variance, mean = torch.var_mean(x, dim=(0, 2, 3), keepdim=True, correction=0)
    return (x - mean) / (variance + 1e-5).sqrt()


def weak_logits(x: Tensor, near: Tensor, far: Tensor, head: Tensor) -> Tensor:
    """Return the logits of the weak net: two convolutions, highest and mean value of each channel, a linear layer."""
    x = F.relu(F.conv2d(x, near, stride=2, padding=2))
    x = F.relu(F.conv2d(x, far, stride=2, padding=1))
    return torch.cat([x.amax((2, 3)), x.mean((2, 3))], dim=1) @ head.T


class PoE(Debiaser):
    """Join the learner's belief with that of a weak net before the loss is taken."""

    config: PoEConfig
    config_type = PoEConfig

    def __init__(self, config: PoEConfig, classes: int, generator: torch.Generator) -> None:
        super().__init__(config, classes, generator)
        self.shapes = {"near": (16, 3, 5, 5), "far": (32, 16, 3, 3), "head": (classes, 64)}
        for name, shape in self.shapes.items():
            deviation = sqrt(2 / prod(shape[1:])) * (0.1 if name == "head" else 1)
            drawn = deviation * torch.randn(shape, generator=generator, device=generator.device)
            self.register_buffer(name, drawn)
            self.register_buffer(f"{name}_velocity", torch.zeros_like(drawn))
        self.weak: Tensor | None = None  # the weak net's logits for the rows of this batch

    def see(self, x: Tensor, labels: Tensor) -> None:
        if self.config.weight:
            self.weak = self.learn(small(x), labels)

    def learn(self, x: Tensor, labels: Tensor) -> Tensor:
        """Return the weak net's logits, and then train it on the batch: SGD with momentum."""
        weights = [getattr(self, name) for name in self.shapes]
        velocities = [getattr(self, f"{name}_velocity") for name in self.shapes]
        answers = []
        for _ in range(self.config.rounds):
            with torch.enable_grad():
                leaves = [weight.detach().requires_grad_() for weight in weights]
                logits = weak_logits(x, *leaves)
                gradients = torch.autograd.grad(F.cross_entropy(logits, labels), leaves)
            answers.append(logits.detach())
            for weight, velocity, gradient in zip(weights, velocities, gradients):
                velocity.mul_(MOMENTUM).add_(gradient)
                weight.sub_(self.config.rate * velocity)
        return answers[0]

    def logits(self, logits: Tensor) -> Tensor:
        """Return the logits of the product of both beliefs: the weak net's count as its weight says."""
        if self.config.weight == 0:
            return logits
        if self.weak is None or len(self.weak) != len(logits):
            raise BadBatch("poe looks at every batch before augmentation: call layer.see(x, y) for the same rows first")
        return logits + self.config.weight * self.weak.log_softmax(1)
