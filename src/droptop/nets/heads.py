"""Backbones with a head of another kind: stem and trunk are those of the net within.

    Projected   in training a projection of the features; predicts by the nearest class mean
    Cosine      cosines of the features and one weight vector per class, its proxy
    Computed    of a frozen ViT: the classifier is computed from statistics of the features, not trained

What `Projected` and `Computed` predict by is no part of a learner's state: `Learner.refresh` computes it anew.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from droptop.errors import BadRequest
from droptop.nets.adapted import Adapted
from droptop.nets.backbone import Backbone, Features, evaluating
from droptop.nets.prompts import cosines
from droptop.nets.vit import ViT

Shape = tuple[int, int, int]  # of an image: channels, height, width


class Wrapped(Backbone):
    """A backbone with the stem and the trunk of another one."""

    def __init__(self, net: Backbone) -> None:
        super().__init__()
        if isinstance(net, Adapted):
            raise BadRequest(
                "this method takes a net that droptop builds: of a model of one's own no features are known"
            )
        self.net = net

    def stem(self, x: Tensor) -> Tensor:
        return self.net.stem(x)

    def trunk(self, first: Tensor, *given: Any) -> Features:
        return self.net.trunk(first, *given)


def feature_width(net: Backbone, shape: Shape) -> int:
    """Return how many features a net has of an image of this shape."""
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
    """Give the features of a frozen ViT in training and, in evaluation, the logits of a classifier linear in them.

    With a projection (d, M) the features are relu(pooled @ projection). They are float64, as are statistics of them:
    sums over a whole stream lose nothing, and no GPU rounds their products. `unit` divides logits by their length.
    """

    weight: Tensor
    bias: Tensor
    projection: Tensor | None

    def __init__(self, vit: ViT, classes: int, projection: Tensor | None = None, unit: bool = False) -> None:
        super().__init__(vit.requires_grad_(False))
        for weight in vit.classifier.parameters():  # serves nobody; zero, it is the same for every seed
            nn.init.zeros_(weight)
        self.unit, self.width = unit, vit.width if projection is None else projection.shape[1]
        self.register_buffer("projection", projection)
        self.register_buffer("weight", torch.zeros(classes, self.width, dtype=torch.float64), persistent=False)
        self.register_buffer("bias", torch.zeros(classes, dtype=torch.float64), persistent=False)

    def head(self, features: Features) -> Tensor:
        pooled = features.pooled.double()
        if self.projection is not None:
            pooled = (pooled @ self.projection.double()).relu()
        if self.training:
            return pooled
        logits = F.linear(pooled, self.weight, self.bias)
        logits = logits / pooled.norm(dim=1, keepdim=True).clamp(min=1e-12) if self.unit else logits
        return logits.to(features.pooled.dtype)
