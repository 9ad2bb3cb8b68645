"""Backbones with a head of another kind: stem and trunk are those of the net within.

    Projected   in training a projection of the features; predicts by the nearest class mean
    Cosine      cosines of the features and one weight vector per class, its proxy
    Computed    of a frozen net: the classifier is computed from statistics of the features, not trained

What `Projected` and `Computed` predict by is no part of a learner's state: `Learner.refresh` computes it anew.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from droptop.nets.adapted import Adapted
from droptop.nets.backbone import AttentionNorm, Backbone, Change, Features, evaluating
from droptop.nets.library_net import LibraryNet
from droptop.nets.prompts import cosines
from droptop.nets.vit import ViT

Shape = tuple[int, int, int]  # of an image: channels, height, width


class Wrapped(Backbone):
    """A backbone with the stem and the trunk of another one."""

    def __init__(self, net: Backbone) -> None:
        super().__init__()
        if isinstance(net, Adapted):
            net.take_out_classifier()
        self.net, self.hooked, self.pixels = net, net.hooked, net.pixels

    def forward(self, x: Tensor) -> Tensor:
        return self.of_pooled(self.net(x)) if self.hooked else super().forward(x)

    def of_pooled(self, pooled: Tensor) -> Tensor:
        """Return the logits of pooled features; no head looks at the map."""
        return self.head(Features(pooled, pooled))

    def features(self, x: Tensor) -> Features:
        return self.net.features(x) if self.hooked else super().features(x)

    def changed(self, x: Tensor, change: Change, attention_pass: AttentionNorm | None) -> Tensor:
        return self.of_pooled(self.net.changed(x, change, attention_pass))

    def maps(self, x: Tensor, norm: AttentionNorm) -> tuple[Tensor, Tensor]:
        return self.net.maps(x, norm)

    def stem(self, x: Tensor) -> Tensor:
        return self.net.stem(x)

    def trunk(self, first: Tensor, *given: Any) -> Features:
        return self.net.trunk(first, *given)


def feature_width(net: Backbone, shape: Shape) -> int:
    """Return how many features a net has of an image of this shape."""
    if isinstance(net, ViT):
        return net.width
    with evaluating(net):
        return net.features(torch.zeros(1, *shape, device=next(net.parameters()).device)).pooled.shape[1]


class Projected(Wrapped):
    """Give a projection in training, and in evaluation the cosines with class means, over a temperature.

    A class of which there is no mean has the lowest logit that there can be.
    """

    means: Tensor

    def __init__(self, net: Backbone, shape: Shape, size: int, classes: int, temperature: float) -> None:
        super().__init__(net)
        self.temperature, width = temperature, feature_width(net, shape)
        self.project = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, size))
        self.register_buffer("means", torch.zeros(classes, width), persistent=False)

    def head(self, features: Features) -> Tensor:
        if self.training:
            return self.project(features.pooled)
        known = self.means.square().sum(1) > 0
        return torch.where(known, cosines(features.pooled, self.means), -1.0) / self.temperature


class Cosine(Wrapped):
    """Give the cosines of features and proxies, over a temperature; the proxies are the rows of the net's own head."""

    def __init__(self, net: Backbone, shape: Shape, temperature: float) -> None:
        super().__init__(net)
        self.temperature, self.width = temperature, feature_width(net, shape)

    def head(self, features: Features) -> Tensor:
        # What a linear head adds for each feature is its weights, whatever its name; without features it is the bias.
        pooled = features.pooled
        each = torch.eye(self.width + 1, self.width, dtype=pooled.dtype, device=pooled.device)
        *columns, bias = self.net.head(Features(features.map, each))
        return cosines(pooled, torch.stack(columns, 1) - bias[:, None]) / self.temperature


class Computed(Wrapped):
    """Give the features of a frozen net in training and, in evaluation, the logits of a classifier linear in them.

    With a projection (d, M) the features are relu(pooled @ projection). They are float64 where the device has that, as
    are statistics of them: sums over a whole stream lose nothing, and no GPU rounds their products. `unit` divides
    logits by their length.
    """

    weight: Tensor
    bias: Tensor
    projection: Tensor | None

    def __init__(
        self, net: Backbone, shape: Shape, classes: int, projections: int | None = None, unit: bool = False
    ) -> None:
        super().__init__(net.requires_grad_(False))
        assert isinstance(net, ViT | LibraryNet)
        assert net.classifier is not None
        for weight in net.classifier.parameters():  # serves nobody; zero, it is the same for every seed
            nn.init.zeros_(weight)
        width = feature_width(net, shape)
        self.unit, self.width = unit, width if projections is None else projections
        self.register_buffer("projection", None if projections is None else torch.randn(width, projections))
        self.register_buffer("weight", torch.zeros(classes, self.width, dtype=torch.float64), persistent=False)
        self.register_buffer("bias", torch.zeros(classes, dtype=torch.float64), persistent=False)

    def train(self, mode: bool = True) -> "Computed":
        """Set the mode, but leave BatchNorm in eval mode: features of an image do not depend on others."""
        super().train(mode)
        for layer in self.modules():
            if isinstance(layer, _BatchNorm):
                layer.training = False
        return self

    def head(self, features: Features) -> Tensor:
        pooled = features.pooled.to(self.weight.dtype)
        if self.projection is not None:
            pooled = (pooled @ self.projection.to(pooled.dtype)).relu()
        if self.training:
            return pooled
        logits = F.linear(pooled, self.weight, self.bias)
        logits = logits / pooled.norm(dim=1, keepdim=True).clamp(min=1e-12) if self.unit else logits
        return logits.to(features.pooled.dtype)
