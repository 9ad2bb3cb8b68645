"""The bounds: training on the stream alone, over tasks (finetune) or over all classes at once (joint)."""

import pytest

from .slow import Row, SlowLearner, agree, batches, fast


class SlowFinetune(SlowLearner):
    def retrieve(self, arrived: list[Row]) -> list[Row]:
        return []

    def remember(self, arrived: list[Row]) -> None:
        pass


@pytest.mark.parametrize(("method", "tasks"), [("finetune", 2), ("joint", 1)])
@pytest.mark.parametrize("replay_forward", ["joint", "separate"])
def test_bounds(method, tasks, replay_forward):
    learner = fast(method, replay_forward=replay_forward)
    agree(learner, SlowFinetune(learner), batches(8, tasks=tasks))
    assert learner.memory.size == 0


def test_intensities_stay_without_a_memory():
    learner = fast("finetune", {}, augment="none")
    slow = SlowFinetune(learner)
    agree(learner, slow, batches(8))
    assert slow.droptop.kappa == [10.0] * 4
