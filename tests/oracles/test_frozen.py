"""NCM (Mensink et al., 2013), SLDA (Hayes and Kanan, 2020) and RanPAC (McDonnell et al., 2023), on frozen features."""

import pytest
import torch
from torch import Tensor

from .slow import CLASSES, batches, close
from .slow_frozen import SlowFrozen, fast_frozen, same


class SlowNCM(SlowFrozen):
    def score(self, feature: Tensor) -> dict[int, Tensor]:
        if self.config.distance == "cosine":
            return {c: feature @ m / feature.norm() / m.norm() for c, m in self.class_means().items()}
        return {c: (feature @ feature - (feature - m) @ (feature - m)) / 2 for c, m in self.class_means().items()}


class SlowSLDA(SlowFrozen):
    """One sample after another, as in Eq. 1 to 3 of the paper."""

    def __init__(self, learner):
        super().__init__(learner)
        width = learner.model.width
        self.covariance, self.running = torch.zeros(width, width), torch.zeros(CLASSES, width)
        self.of_class = [0] * CLASSES

    def add(self, feature: Tensor, label: int) -> None:
        t, apart = len(self.kept), feature - self.running[label]
        self.covariance = (t * self.covariance + t / (t + 1) * torch.outer(apart, apart)) / (t + 1)
        self.running[label] += apart / (self.of_class[label] + 1)
        self.of_class[label] += 1
        super().add(feature, label)

    def score(self, feature: Tensor) -> dict[int, Tensor]:
        e = self.config.shrinkage
        inverse = torch.linalg.inv((1 - e) * self.covariance + e * torch.eye(len(feature)))
        return {
            c: feature @ inverse @ self.running[c] - self.running[c] @ inverse @ self.running[c] / 2 for c in self.seen
        }


class SlowRanPAC(SlowFrozen):
    """Ridge regression on all features; the ridge is that of the least error on every fifth of them."""

    def __init__(self, learner):
        super().__init__(learner)
        self.projection = learner.model.projection.clone()

    def encoded(self, pooled: Tensor) -> Tensor:
        return (pooled @ self.projection).clamp(min=0)

    def regression(self, places: list[int], ridge: float) -> Tensor:
        """Weights (M, classes) by the normal equations."""
        x, y = self.table(places)
        return torch.linalg.solve(x.T @ x + ridge * torch.eye(x.shape[1]), x.T @ y)

    def table(self, places: list[int]) -> tuple[Tensor, Tensor]:
        x = torch.stack([self.kept[place][0] for place in places])
        return x, torch.stack([torch.eye(CLASSES)[self.kept[place][1]] for place in places])

    def ridge(self) -> float:
        every = self.config.held_out
        held = [place for place in range(len(self.kept)) if place % every == every - 1]
        rest = [place for place in range(len(self.kept)) if place not in held]
        if self.config.ridge is not None or not held:
            return self.config.ridge or 1e-8
        x, y = self.table(held)
        errors = {r: ((x @ self.regression(rest, r) - y) ** 2).sum() for r in (10.0**k for k in range(-8, 9))}
        return min(errors, key=errors.__getitem__)

    def predict(self, x: Tensor) -> Tensor:
        self.weights = self.regression(list(range(len(self.kept))), self.ridge())
        return super().predict(x)

    def score(self, feature: Tensor) -> dict[int, Tensor]:
        logits = feature @ self.weights
        return {c: logits[c] for c in self.seen}


SLOW = {"ncm": SlowNCM, "slda": SlowSLDA, "ranpac": SlowRanPAC}
SETTINGS = {
    "cosine": ("ncm", {}),
    "euclidean": ("ncm", {"distance": "euclidean", "augment": "crop-flip", "iterations": 2}),
    "slda": ("slda", {}),
    "slda of several views": ("slda", {"shrinkage": 0.3, "augment": "crop-flip", "iterations": 2}),
    "ranpac": ("ranpac", {"projections": 12}),
    "every second": ("ranpac", {"projections": 30, "held_out": 2, "augment": "crop-flip"}),
    "given ridge": ("ranpac", {"projections": 12, "ridge": 0.7}),
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_frozen_features(settings):
    method, options = SETTINGS[settings]
    learner = fast_frozen(method, **options)
    same(learner, SLOW[method](learner), batches(9))


@pytest.mark.parametrize("method", SLOW)
def test_frozen_features_with_droptop(method):
    """What is summed is what is left of the first map; intensities stay as they are."""
    learner = fast_frozen(method, {}, **({"projections": 12} if method == "ranpac" else {}))
    slow = SLOW[method](learner)
    same(learner, slow, batches(6))
    close(learner.debias.droptop.intensity.kappa, [10.0] * CLASSES)


def test_the_ridge_that_was_chosen_is_reported():
    learner = fast_frozen("ranpac", projections=12)
    slow = SlowRanPAC(learner)
    for batch in batches(8):
        learner.observe(*batch)
        slow.observe(*batch)
    assert learner.report() == {"ridge": slow.ridge()}
