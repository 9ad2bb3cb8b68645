"""DualPrompt's experts: which one trains a sample, how a new one begins, which one predicts."""

import pytest
import torch

from droptop import BadBatch, BadRequest, make_learner, make_stream
from droptop.nets.prompts import cosines

from toys import differences, feed, snapshot, toy_batches, toy_learner

PLAIN = {"debias": "none", "augment": "none"}


def test_a_sample_is_trained_with_the_expert_of_its_task():
    learner = feed(toy_learner("dualprompt", memory=100, **PLAIN), toy_batches(8))
    size = int(learner.memory.size)
    assert torch.equal(learner.memory.rows["task"][:size], learner.memory.rows["y"][:size] // 2)
    rows = learner.memory.read(torch.arange(size))
    prefixes = learner.prefixes(learner.model.prompts, rows["query"], rows)
    prompts = learner.model.prompts
    for sample in (0, size - 1):
        expert = prompts.experts[rows["task"][sample]]
        assert torch.equal(prefixes[3][:, sample], expert[1].transpose(1, 2))  # block 4 is the experts' second
        assert torch.equal(prefixes[1][:, sample], prompts.general[0, 1].transpose(1, 2))
    assert sorted(prefixes) == [0, 1, 2, 3, 4]


def test_a_new_expert_begins_as_the_one_before():
    batches = toy_batches(8)
    learner = feed(toy_learner("dualprompt"), batches[:4])
    experts = learner.model.prompts.experts
    before = experts.clone()
    assert all(torch.equal(expert, before[0]) for expert in before)
    prompts = learner.model.prompts
    assert not torch.equal(prompts.keys[0], prompts.keys[1])  # the keys begin on their own
    for name in ("exp_avg", "exp_avg_sq"):
        moment = learner.optimizer.state[experts][name]
        assert moment[0].abs().sum() > 0
        assert torch.equal(moment[0], moment[1])
    learner.observe(*batches[4])
    assert learner.model.prompts.entered.tolist() == [True, True] + 8 * [False]
    assert not torch.equal(experts[1], before[1])
    assert all(torch.equal(expert, experts[1]) for expert in experts[2:])
    learner.observe(*batches[0])  # back to the first task: experts that are to come follow, the second stays
    assert all(torch.equal(expert, experts[0]) for expert in experts[2:])
    assert not torch.equal(experts[0], experts[1])


def test_prediction_takes_the_nearest_expert_of_those_seen():
    learner = feed(toy_learner("dualprompt", **PLAIN), toy_batches(8))
    x, _, _ = toy_batches(1, seed=3)[0]
    prompts, vit = learner.model.prompts, learner.model.vit
    with torch.no_grad():
        first = vit.stem(learner.normalise(x))
        query = vit.trunk(first).pooled
        prompts.keys[5] = query[0]  # no task has this key yet
        nearest = cosines(query, prompts.keys)[:, :2].argmax(1)
        (prefixes,) = learner.given(learner.model, first, {})
        expected = vit.head(vit.trunk(first, prefixes))
    for sample, expert in enumerate(nearest):
        assert torch.equal(prefixes[2][:, sample], prompts.experts[expert, 0].transpose(1, 2))
    torch.testing.assert_close(learner.predict(x), expected)


def test_the_task_comes_with_the_batch_and_is_no_state():
    """It comes with the batch: a learner that was told another one before goes on alike."""
    batches = toy_batches(8)
    a, b = (feed(toy_learner("dualprompt"), batches[:5]) for _ in range(2))
    b.enter(0)
    feed(a, batches[5:]), feed(b, batches[5:])
    assert differences(a.state_dict(), b.state_dict()) == []


def test_more_tasks_than_experts_are_refused():
    learner = feed(toy_learner("dualprompt", experts=2), toy_batches(4))
    before = snapshot(learner)
    for task in (2, -1):
        with pytest.raises(BadBatch, match=f"no expert for task {task}"):
            learner.observe(*toy_batches(1)[0][:2], task)
    assert differences(before, learner.state_dict()) == []
    with pytest.raises(BadRequest, match="--experts takes at least one for each of 5 tasks, not 3"):
        make_learner("dualprompt", make_stream("fashion"), weights="random", experts=3)
