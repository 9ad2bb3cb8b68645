"""RanPAC: random projections of frozen features, and ridge regression on them (McDonnell et al., 2023).

    h = relu(f W),  W random normal;   G = sum of h h',  q_c = sum of h over class c
    logit of c = h (G + r I)^-1 q_c

The ridge r is the power of ten, from 1e-8 to 1e8, of the least squared error on held-out samples, as in the paper.
There it is chosen once per task, by a fifth of its stored features. Here every fifth sample of the stream is held out,
which takes no stored features: with G and q of the held-out samples, the error of a classifier (v_c) is the sum over c
of v_c G v_c - 2 v_c q_c, but for a constant. The classifier itself is then of all samples.

The paper first trains adapters on the first task for several epochs ("phase 1"), which a stream that is seen once does
not allow: these are its figures "without PETL". It takes 10,000 projections of 768 features; the default here is 2,000,
as G and its held-out part grow by the square (64 MB; 10,000 take 1.6 GB, in every checkpoint).

Cost of a step: one forward of the stream's rows, and M x M per row. Before an evaluation 18 factorisations of M x M.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from droptop.errors import require
from droptop.learner import LearnerConfig
from droptop.methods.frozen import Frozen
from droptop.nets import Backbone
from droptop.nets.heads import Computed
from droptop.rng import seeded
from droptop.types import Spec

RIDGES = tuple(10.0**power for power in range(-8, 9))


@dataclass(frozen=True)
class RanPACConfig(LearnerConfig):
    """Hold the settings of RanPAC."""

    projections: int = 2000
    """Number of random projections (M)."""
    ridge: float | None = None
    """Ridge of the regression; by default the power of ten with the least squared error on held-out samples."""
    held_out: int = 5
    """The ridge is chosen by one sample of the stream in this many."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.projections >= 1, "projections", "a number from 1", self.projections)
        fits = self.ridge is None or 0 < self.ridge < float("inf")
        require(fits, "ridge", "a number above 0", self.ridge)
        require(self.held_out >= 2, "held_out", "a number from 2", self.held_out)


def solve(gram: Tensor, products: Tensor, ridge: float | Tensor) -> tuple[Tensor, Tensor]:
    """Return the ridge regression (classes, M), and whether it could be computed."""
    lower, info = torch.linalg.cholesky_ex(gram + ridge * torch.eye(len(gram), device=gram.device))
    return torch.cholesky_solve(products.T, lower).T, info == 0


class RanPAC(Frozen):
    """Ridge regression on random projections."""

    config: RanPACConfig
    config_type = RanPACConfig

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        width = self.model.width
        self.gram = self.zeros(width, width)  # of all samples
        self.held_gram = self.zeros(width, width)  # of held-out ones
        self.held_sums = torch.zeros_like(self.sums)
        self._ridge = self.zeros()
        self._ridges = torch.tensor(RIDGES, dtype=self.gram.dtype, device=self.device)  # a constant, no state

    def computed(self, net: Backbone, spec: Spec, config: Any, seed: int) -> Computed:
        with seeded(seed, "init", "projection"):
            return Computed(net, spec.shape, len(spec.classes), config.projections)

    def learn(self, features: Tensor, labels: Tensor, one: Tensor) -> None:
        """Add products of features to those of all samples, and to those of held-out ones."""
        place = self.counts.sum() + torch.arange(len(labels), device=self.device)
        held = features * (place % self.config.held_out == self.config.held_out - 1)[:, None]
        self.gram += features.T @ features
        self.held_gram += held.T @ held
        self.held_sums.index_add_(0, labels, held)
        super().learn(features, labels, one)

    def refresh(self) -> None:
        """Choose the ridge, and compute the classifier."""
        ridge = self.config.ridge
        self._ridge.copy_(self.best_ridge() if ridge is None else torch.full_like(self._ridge, ridge))
        self.model.weight.copy_(solve(self.gram, self.sums, self._ridge)[0])

    def best_ridge(self) -> Tensor:
        """Return the ridge of the least squared error on held-out samples, of regressions on the others."""
        gram, sums = self.gram - self.held_gram, self.sums - self.held_sums
        errors = []
        for ridge in RIDGES:
            weight, solved = solve(gram, sums, ridge)
            error = (weight @ self.held_gram * weight).sum() - 2 * (weight * self.held_sums).sum()
            errors.append(torch.where(solved & error.isfinite(), error, torch.inf))
        return self._ridges.index_select(0, torch.stack(errors).argmin()[None])[0]

    def report(self) -> dict[str, Any]:
        """Give the ridge that predicts."""
        self.settle()
        return {"ridge": self._ridge.item()}
