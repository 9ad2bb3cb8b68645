"""Models of other people with the debiasing layer in them, and what a training step sees of them."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import droptop

from models import CLASSES, ResNet
from toys import differences

X = torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(0))
Y = torch.arange(8) % CLASSES


def seeded(make, **options) -> nn.Module:
    """Make a model by torch's own generator, which stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make(**options)


def attached(
    make=ResNet,
    first: str = "maxpool",
    last: str = "layer4",
    model: nn.Module | None = None,
    classes: int = CLASSES,
    **options,
) -> tuple[nn.Module, droptop.Attached]:
    """Give a model the debiasing layer; return both."""
    model = model or seeded(make)
    return model, droptop.attach(model, first, last, classes, **options)


def outcome(model: nn.Module, logits: Tensor) -> dict[str, Tensor]:
    """Return what a training step sees of a model: logits, gradients, statistics."""
    model.zero_grad()
    F.cross_entropy(logits, Y).backward()
    gradients = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    return {"logits": logits.detach(), **gradients, **dict(model.named_buffers())}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    """Return whether two outcomes are equal to the last bit."""
    return differences(a, b) == []
