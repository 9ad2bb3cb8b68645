"""ER-ACE (Caccia et al., 2022): stream samples compete with the classes of their batch, memory samples with all."""

import pytest
from torch import Tensor

from .slow import Row, SlowLearner, agree, batches, cross_entropy, fast, mean


class SlowERACE(SlowLearner):
    def loss(self, logits: Tensor, arrived: list[Row], replayed: list[Row]) -> Tensor:
        present = sorted({row["y"] for row in arrived})
        new = [cross_entropy(output[present], present.index(row["y"])) for output, row in zip(logits, arrived)]
        old = [cross_entropy(output, row["y"]) for output, row in zip(logits[len(arrived) :], replayed)]
        return mean(new) + mean(old)


@pytest.mark.parametrize("options", [{}, {"replay_forward": "separate"}])
def test_er_ace(options):
    learner = fast("er-ace", **options)
    agree(learner, SlowERACE(learner), batches(12))


def test_er_ace_with_droptop():
    learner = fast("er-ace", {}, augment="none")
    agree(learner, SlowERACE(learner), batches(8))
