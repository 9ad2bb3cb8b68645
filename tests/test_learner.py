"""What the contracts do not see: the probe, and streams of one's own."""

import math

import pytest
import torch
import torch.nn.functional as F

from droptop import BadBatch, BadRequest, Samples, Spec, Stream, StreamConfig, make_learner, make_stream

from toys import feed, toy_batches, toy_learner


@pytest.mark.parametrize("per", ["class", "common"])
def test_the_probe_is_the_mean_loss_of_the_memory_in_eval_mode(per):
    """Against a slow loop, one sample at a time, over a memory that is half full."""
    learner = feed(toy_learner(memory=60, per=per, period=1000), toy_batches(8)[:4])
    size = int(learner.memory.size)
    assert size == 32
    learner.probe()
    learner.model.eval()
    losses: dict[int, list[float]] = {group: [] for group in range(4)}
    for x, y in zip(learner.memory.rows["x"][:size], learner.memory.rows["y"][:size]):
        loss = F.cross_entropy(learner.model(learner.normalise(x[None])), y[None])
        losses[int(y) if per == "class" else 0].append(loss.item())
    expected = [sum(values) / len(values) if values else math.nan for values in losses.values()]
    assert learner.debias.intensity.loss[0].tolist() == pytest.approx(expected[: 4 if per == "class" else 1], rel=1e-4,
                                                                      nan_ok=True)


def test_a_small_probe_takes_some_of_the_memory():
    learner = feed(toy_learner(memory=60, per="common", period=1000, probe=5), toy_batches(8)[:4])
    seen = []
    learner.model.fc.register_forward_hook(lambda module, x, logits: seen.append(len(logits)))
    learner.probe()
    assert seen == [5]


def test_your_own_stream():
    spec = Spec((3, 16, 16), ("cat", "dog"))
    y = torch.arange(64) % 2
    x = torch.randint(0, 256, (64, 3, 16, 16), dtype=torch.uint8)
    stream = Stream("mine", spec, Samples(x, y), {}, StreamConfig(tasks=2, batch=8), seed=0)
    learner = make_learner("er", stream, width=4)
    assert (learner.config.lr, learner.config.augment) == (0.1, "crop-flip")  # the paper's, where no stream says more
    for x, y, task, _ in stream:
        assert learner.observe(x, y, task).isfinite()


def test_joint_takes_one_task():
    with pytest.raises(BadRequest, match="--tasks takes 1"):
        make_learner("joint", make_stream("fashion"))
    assert len(make_learner("joint", make_stream("fashion", tasks=1)).spec.classes) == 10


@pytest.mark.parametrize(("wrong", "says"), [
    (lambda x: x / 255, "images must be torch.uint8, not torch.float32"),
    (lambda x: x[..., :5], r"images must have shape \(batch, [\d, ]+\), not \(4, [\d, ]+, 5\)"),
    (lambda x: x[0], r"images must have shape \(batch, [\d, ]+\), not"),
    (lambda x: x.tolist(), "images must be a tensor, not list")])
def test_images_that_it_would_not_understand_are_not_predicted(wrong, says):
    learner = toy_learner("er")
    x = torch.zeros(4, *learner.spec.shape, dtype=torch.uint8)
    with pytest.raises(BadBatch, match=says):
        learner.predict(wrong(x))
    with pytest.raises(BadBatch, match="there are 4 images and 3 labels"):
        Samples(x, torch.zeros(3, dtype=torch.int64))
