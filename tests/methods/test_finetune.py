"""The bounds: training without a memory, and on all classes at once."""

import pytest

from droptop import BadRequest, configure

from toys import feed, toy_batches, toy_learner


@pytest.mark.parametrize("method", ["finetune", "joint"])
def test_nothing_is_kept_and_nothing_replayed(method):
    learner, batches = toy_learner(method, debias="none"), toy_batches(3)
    feed(learner, batches)
    assert learner.memory.size == 0
    x, y, _ = batches[0]
    assert [len(rows) for rows in learner.retrieve({"x": x, "y": y}).values()] == [0, 0]


def test_joint_takes_all_classes_as_one_task():
    assert configure("fashion", "joint").stream.tasks == 1
    assert configure("fashion", "finetune").stream.tasks > 1
    toy_learner("joint").check_tasks(1)
    with pytest.raises(BadRequest, match="--tasks takes 1 with this method, not 2"):
        toy_learner("joint").check_tasks(2)
    toy_learner("finetune").check_tasks(2)
