import torch
import torch.nn.functional as F

from toys import feed, toy_batches, toy_learner


def test_loss_by_its_formula():
    """Stream samples compete among the classes of their own batch, memory samples among all."""
    learner = feed(toy_learner("er-ace", debias="none"), toy_batches(6))
    batches, loss = [], learner.loss
    learner.loss = lambda logits, batch: batches.append((logits.detach(), batch)) or loss(logits, batch)
    x, y, _ = toy_batches(2)[1]  # classes 2 and 3
    returned = learner.observe(x, y)
    ((logits, batch),) = batches
    present = sorted(set(y.tolist()))
    assert present == [2, 3]
    own = F.cross_entropy(logits[:8][:, present], torch.tensor([present.index(label) for label in y.tolist()]))
    torch.testing.assert_close(returned, own + F.cross_entropy(logits[8:], batch.replayed["y"]))
