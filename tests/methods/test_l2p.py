import pytest

from toys import feed, toy_batches, toy_learner


def test_usage_counts_every_choice():
    learner = feed(toy_learner("l2p", pool=7, chosen=3), toy_batches(5))
    usage = learner.report()["prompts"]
    assert len(usage) == 7
    assert sum(usage) == 5 * (8 + 6) * 3
    assert max(usage) <= 5 * (8 + 6)


def test_the_learning_rate_scales_with_the_batch():
    learner = toy_learner("l2p", lr_scale="batch/256")
    learner.observe(*toy_batches(1, size=16)[0])
    assert learner.optimizer.param_groups[0]["lr"] == pytest.approx(0.05 * 16 / 256)
