"""Learning from frozen features, the slow way: every feature is kept in a list, and all is computed of the lists.

The ViT is a formula (`slow_nets.py`). What a step reports is one minus the cosine of a feature and the mean of those of
its class before the step.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from droptop import Learner
from droptop.debias import Chosen, DropTop
from droptop.methods import METHODS
from droptop.rng import seeded

from .slow import CLASSES, SPEC, SlowLearner, close, droptop_config, mean
from .slow_nets import SlowNet, SlowViT, tiny_vit


class SlowWithin(SlowViT):
    prefix = "net."


class SlowFrozen(SlowLearner):
    def __init__(self, learner: Learner) -> None:
        super().__init__(learner)
        self.kept: list[tuple[Tensor, int]] = []  # features and labels of the whole stream

    def slow_net(self, model: torch.nn.Module) -> SlowNet:
        return SlowWithin(model)

    def encoded(self, pooled: Tensor) -> Tensor:
        return pooled

    def observe(self, x: Tensor, y: Tensor, task: int) -> float:
        if self.droptop is not None:
            self.droptop.traces = []
        before, labels, new = list(self.kept), y.tolist(), []
        for _ in range(self.config.iterations):
            images = torch.stack([self.normalise(image) for image in self.augmented(list(x))])
            with torch.no_grad():
                features = self.features(images, labels)
            new += [(self.encoded(feature), label) for feature, label in zip(features, labels)]
        for feature, label in new:
            self.add(feature, label)
        self.seen |= set(labels)
        apart = []
        for feature, label in new:
            others = [other for other, of in before if of == label]
            apart.append(
                1 - centre(others) @ feature / centre(others).norm() / feature.norm() if others else torch.ones(())
            )
        return mean(apart).item()

    def features(self, images: Tensor, labels: list[int]) -> Tensor:
        """The pooled features of training images, in which DropTop may have dropped cells."""
        net, first = self.nets[0], self.nets[0].stem(images, "train")
        if self.droptop is not None:
            first = first * self.droptop.mask(first, lambda: net.trunk(first, "batch")[0], labels, None)[:, None]
        return net.trunk(first, "train")[1]

    def add(self, feature: Tensor, label: int) -> None:
        self.kept.append((feature, label))

    def class_means(self) -> dict[int, Tensor]:
        return {label: centre([one for one, of in self.kept if of == label]) for label in sorted(self.seen)}

    def score(self, feature: Tensor) -> dict[int, Tensor]:
        """The logit of each class seen, for the features of a test image."""
        raise NotImplementedError

    def predict(self, x: Tensor) -> Tensor:
        net = self.nets[0]
        pooled = net.trunk(net.stem(torch.stack([self.normalise(image) for image in x]), "running"), "running")[1]
        logits = torch.full((len(x), CLASSES), -torch.inf)
        for place, one in enumerate(pooled):
            for label, logit in self.score(self.encoded(one)).items():
                logits[place, label] = logit
        return logits


def centre(features: list[Tensor]) -> Tensor:
    return sum(features) / len(features)


def fast_frozen(method: str, debias: dict[str, Any] | None = None, **options: Any) -> Learner:
    """Droptop's learner with a tiny ViT."""
    kind = METHODS[method]
    config = kind.config_type(**{"memory": 9, "memory_batch": 4, "augment": "none"} | options)
    chosen = [] if debias is None else [Chosen(DropTop, droptop_config(debias))]
    with seeded(0, "net of the oracles"):
        vit = tiny_vit(CLASSES)
    return kind(vit, SPEC, config, chosen, seed=0)


def same(learner: Learner, slow: SlowFrozen, stream: list[tuple[Tensor, Tensor, int]]) -> None:
    """Feed both learners; fail at the first step after which they differ."""
    for x, y, task in stream:
        assert learner.observe(x, y, task).item() == pytest.approx(slow.observe(x, y, task), abs=1e-6)
        assert learner.memory.size == 0
        if slow.droptop is not None:
            for traced, expected in zip(learner.trace, slow.droptop.traces[0]):
                close(traced, expected)
        close(learner.predict(x), slow.predict(x))
