import torch
import torch.nn.functional as F

from toys import feed, toy_batches, toy_learner


def test_stores_the_logits_of_the_training_pass():
    learner = toy_learner("derpp", memory=100, gamma=20.0)
    seen = []
    learner.model.fc.register_forward_hook(lambda module, x, logits: seen.append(logits.detach()))
    x, y, _ = toy_batches(1)[0]
    learner.step(x, y)
    assert torch.equal(learner.memory.rows["logits"][:8], seen[0][:8])
    assert (len(seen), len(seen[0])) == (1, 8 + 6 + 6)  # one joint pass: the stream and two draws


def test_loss_by_its_formula():
    learner = feed(toy_learner("derpp", debias="none", distill_weight=0.3, replay_weight=0.7), toy_batches(4))
    batches = []
    loss = learner.loss
    learner.loss = lambda logits, batch: batches.append((logits.detach(), batch)) or loss(logits, batch)
    x, y, _ = toy_batches(5)[4]
    returned = learner.observe(x, y)
    ((logits, batch),) = batches
    memory = batch.replayed
    assert memory["there"].all()
    expected = (
        F.cross_entropy(logits[:8], y)
        + 0.3 * F.mse_loss(logits[8:14], memory["logits"][:6])
        + 0.7 * F.cross_entropy(logits[14:], memory["y"][6:])
    )
    torch.testing.assert_close(returned, expected)


def test_rows_that_stand_in_are_not_distilled():
    learner = toy_learner("derpp", debias="none", replay_weight=0.0, distill_weight=1e6)
    x, y, _ = toy_batches(1)[0]
    assert learner.observe(x, y) < 10  # the memory is empty: no stored logits to be far from


def test_the_two_draws_are_independent():
    learner = feed(toy_learner("derpp", debias="none"), toy_batches(6))
    stream = dict(zip("xy", toy_batches(1)[0]))
    draws = [learner.retrieve(stream)["x"].flatten(1) for _ in range(20)]
    same = [bool((draw[:6] == draw[6:]).all()) for draw in draws]
    overlap = [any(torch.equal(a, b) for a in draw[:6] for b in draw[6:]) for draw in draws]
    assert not any(same)
    assert any(overlap)  # a split of one draw would never share a sample
