"""GSS: scores against backward passes of their own, and who leaves the memory."""

import math

import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from toys import feed, toy_batches, toy_learner


def slow_gradient(learner, x, y):
    """One backward pass, flattened."""
    learner.model.eval()
    learner.model.zero_grad()
    F.cross_entropy(learner.model(learner.normalise(x)), y).backward()
    flat = torch.cat([p.grad.flatten() for p in learner.model.parameters()])
    learner.model.zero_grad()
    learner.model.train()
    return flat


@given(st.integers(0, 1000), st.integers(0, 6))
@settings(max_examples=8)
def test_scores_against_explicit_backward_passes(seed, steps):
    learner = feed(toy_learner("gss", seed=seed, gradient_batches=3, gradient_batch=5), toy_batches(6)[:steps])
    x, y, _ = toy_batches(1, size=4, seed=seed)[0]
    state = learner.random["memory"].get_state()
    scores, batch_score = learner.scores({"x": x, "y": y})
    learner.random["memory"].set_state(state)
    slots = learner.memory.draw(15, learner.random["memory"])[0]
    complete = [slots[i : i + 5] for i in range(0, 15, 5) if i + 5 <= learner.memory.size]
    if not complete:
        assert scores.tolist() == [torch.tensor(0.1).item()] * 4
        assert batch_score == 0.1
        return
    rows = learner.memory.rows
    others = [slow_gradient(learner, rows["x"][part], rows["y"][part]) for part in complete]
    for sample in range(4):
        own = slow_gradient(learner, x[sample : sample + 1], y[sample : sample + 1])
        expected = max(F.cosine_similarity(own, other, dim=0) for other in others)
        torch.testing.assert_close(scores[sample], expected, rtol=1e-3, atol=1e-4)
    expected = max(F.cosine_similarity(slow_gradient(learner, x, y), other, dim=0) for other in others)
    torch.testing.assert_close(batch_score, expected, rtol=1e-3, atol=1e-4)


def test_a_memory_smaller_than_a_batch_gives_scores():
    learner = toy_learner("gss", memory=50)
    learner.observe(*toy_batches(1, size=4)[0])
    x, y, _ = toy_batches(1, size=2, seed=1)[0]
    scores, _ = learner.scores({"x": x, "y": y})
    other = slow_gradient(learner, learner.memory.rows["x"][:4], learner.memory.rows["y"][:4])
    expected = F.cosine_similarity(slow_gradient(learner, x[:1], y[:1]), other, dim=0)
    torch.testing.assert_close(scores[0], expected, rtol=1e-3, atol=1e-4)


def full_learner(held):
    learner = toy_learner("gss", memory=len(held))
    learner.memory.rows["score"][:-1] = torch.tensor(held)
    learner.memory.size.fill_(len(held))
    return learner


def test_a_batch_that_agrees_with_the_memory_replaces_nothing():
    learner = full_learner([0.5] * 6)
    assert learner.victims(torch.zeros(4), torch.tensor(0.0)).tolist() == [6] * 4


def test_victims_by_their_probabilities():
    """Three held scores and one newcomer: victim i with p_i ~ s_i - min, then replaced with s_i' / (s_i' + s_new')."""
    held, new = [-0.5, 0.1, 0.7], 0.2
    learner, trials = full_learner(held), 6000
    taken = torch.stack([learner.victims(torch.tensor([new]), torch.tensor(-0.1))[0] for _ in range(trials)])
    weights = torch.tensor(held) + 0.5
    weights /= weights.sum()
    expected = [float(w) * (s + 1) / (s + 1 + new + 1) for w, s in zip(weights, held)]
    for slot, share in enumerate(expected):
        measured = (taken == slot).float().mean().item()
        assert abs(measured - share) < 4 * math.sqrt(max(share, 0.001) / trials)


def test_victims_are_distinct():
    learner = full_learner([0.1 * i for i in range(10)])
    for _ in range(50):
        taken = [slot for slot in learner.victims(torch.full((8,), -0.9), torch.tensor(-1.0)).tolist() if slot < 10]
        assert len(taken) == len(set(taken))
