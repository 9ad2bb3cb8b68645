import copy

import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from toys import differences, feed, snapshot, toy_batches, toy_learner


def slow_interference(learner, stream, candidates):
    """A copy of the model, a real step of SGD on it, and the losses of each candidate before and after."""

    def losses(model):
        return F.cross_entropy(
            copy.deepcopy(model)(learner.normalise(candidates["x"])), candidates["y"], reduction="none"
        ).detach()

    stepped = copy.deepcopy(learner.model)
    optimizer = torch.optim.SGD(stepped.parameters(), learner.config.lr)
    F.cross_entropy(stepped(learner.normalise(stream["x"])), stream["y"]).backward()
    optimizer.step()
    return losses(stepped) - losses(learner.model)


@given(st.integers(0, 1000), st.integers(3, 8))
@settings(max_examples=10)
def test_interference_is_that_of_a_step_on_a_copy(seed, steps):
    learner = feed(toy_learner("mir", seed=seed, candidates=12), toy_batches(steps, seed=seed))
    x, y, _ = toy_batches(1, seed=seed + 1)[0]
    stream = {"x": x, "y": y}
    candidates = learner.memory.sample(12, torch.Generator().manual_seed(seed), fill=stream)
    torch.testing.assert_close(
        learner.interference(stream, candidates), slow_interference(learner, stream, candidates), rtol=1e-4, atol=1e-5
    )


def test_keeps_those_whose_loss_rises_most_and_leaves_no_trace():
    learner = feed(toy_learner("mir", candidates=15), toy_batches(6))
    stream = dict(zip("xy", toy_batches(1, seed=4)[0]))
    state = learner.random["memory"].get_state()
    before = snapshot(learner)
    chosen = learner.retrieve(stream)
    assert [name for name in differences(before, learner.state_dict()) if name != "random.memory"] == []
    learner.random["memory"].set_state(state)
    candidates = learner.memory.sample(15, learner.random["memory"], fill=stream)
    expected = slow_interference(learner, stream, candidates).argsort(descending=True)[:6]
    assert {row.numpy().tobytes() for row in chosen["x"]} == {candidates["x"][i].numpy().tobytes() for i in expected}


def test_stand_ins_come_last():
    learner = toy_learner("mir", debias="none", memory=50)
    batches = toy_batches(2, size=4)
    learner.observe(*batches[0])
    retrieved = learner.retrieve(dict(zip("xy", batches[1])))
    assert retrieved["there"].tolist() == [True] * 4 + [False] * 2
