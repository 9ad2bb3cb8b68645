"""DER++ (Buzzega et al., 2020): the memory keeps the logits of the training pass in which a sample arrived.

    loss = CE(stream) + 0.2 MSE(logits, stored logits) on one memory draw + 0.5 CE on a second, independent one

A stream row that stands in for a missing memory sample has no stored logits, and no distance from them.
"""

import pytest
import torch
from torch import Tensor

from .slow import Row, SlowLearner, agree, batches, cross_entropy, fast, mean


class SlowDERpp(SlowLearner):
    def retrieve(self, arrived: list[Row]) -> list[Row]:
        return super().retrieve(arrived) + super().retrieve(arrived)

    def loss(self, logits: Tensor, arrived: list[Row], replayed: list[Row]) -> Tensor:
        stream, draw = len(arrived), self.config.memory_batch
        new = [cross_entropy(output, row["y"]) for output, row in zip(logits, arrived)]
        distances = [
            ((output - row["logits"]) ** 2).mean() if row["there"] else torch.zeros(())
            for output, row in zip(logits[stream:], replayed[:draw])
        ]
        old = [cross_entropy(output, row["y"]) for output, row in zip(logits[stream + draw :], replayed[draw:])]
        return mean(new) + self.config.distill_weight * mean(distances) + self.config.replay_weight * mean(old)


SETTINGS = {
    "default": {},
    "weights": {"distill_weight": 0.7, "replay_weight": 1.5},
    "separate": {"replay_forward": "separate"},
    "iterations": {"iterations": 2},
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_derpp(settings):
    learner = fast("derpp", **SETTINGS[settings])
    agree(learner, SlowDERpp(learner), batches(12))


def test_derpp_with_droptop():
    learner = fast("derpp", {}, augment="none")
    agree(learner, SlowDERpp(learner), batches(8))
