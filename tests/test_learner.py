"""What the contracts do not see: the probe, and streams of one's own."""

import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F

import droptop
from droptop import (
    BadBatch,
    BadCheckpoint,
    BadRequest,
    Learner,
    Samples,
    Spec,
    Stream,
    StreamConfig,
    make_learner,
    make_stream,
)
from droptop.errors import Diverged
from droptop.methods import METHODS
from droptop.nets import NetConfig

from toys import SMALL_VIT, differences, feed, snapshot, toy_batches, toy_learner


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
    assert learner.debias.droptop.intensity.loss[0].tolist() == pytest.approx(
        expected[: 4 if per == "class" else 1], rel=1e-4, nan_ok=True
    )


def test_probe_limits_the_samples_of_the_probe():
    learner = feed(toy_learner(memory=60, per="common", period=1000, probe=5), toy_batches(8)[:4])
    seen = []
    learner.model.fc.register_forward_hook(lambda module, x, logits: seen.append(len(logits)))
    learner.probe()
    assert seen == [5]


@pytest.mark.parametrize(("p_counter", "expected"), [("global", [3, 6, 9, 12, 15]), ("task", [3, 7, 10, 15])])
def test_p_steps_are_counted_over_the_stream_or_anew_in_each_task(p_counter, expected):
    """Tasks of 4, 6, 2 and 3 steps, the last of which is the first one again."""
    learner, x, y = toy_learner(period=3, p_counter=p_counter), *toy_batches(1)[0][:2]
    probed = []
    learner.probe = lambda: probed.append(learner.clock["step"])
    for task, steps in ((0, 4), (1, 6), (2, 2), (0, 3)):
        for _ in range(steps):
            learner.observe(x, y, task)
    assert probed == expected


def test_a_learner_learns_from_a_stream_made_by_hand():
    spec = Spec((3, 16, 16), ("cat", "dog"))
    y = torch.arange(64) % 2
    x = torch.randint(0, 256, (64, 3, 16, 16), dtype=torch.uint8)
    stream = Stream("mine", spec, Samples(x, y), {}, StreamConfig(tasks=2, batch=8), seed=0)
    learner = make_learner("er", stream, width=4)
    assert (learner.config.lr, learner.config.augment) == (0.1, "crop-flip")  # the paper's, where no stream says more
    for x, y, task, _ in stream:
        assert learner.observe(x, y, task).isfinite()


def test_a_test_set_without_samples_of_a_task_is_refused():
    spec, x = Spec((3, 16, 16), ("cat", "dog")), torch.zeros(16, 3, 16, 16, dtype=torch.uint8)
    cats = Samples(x, torch.zeros(16, dtype=torch.int64))
    with pytest.raises(BadRequest, match="test set cats of mine has no samples of task 1"):
        Stream("mine", spec, Samples(x, torch.arange(16) % 2), {"cats": cats}, StreamConfig(tasks=2, batch=4), seed=0)


def test_make_learner_refuses_other_things_than_streams():
    x, spec = torch.zeros(16, 3, 16, 16, dtype=torch.uint8), Spec((3, 16, 16), ("cat", "dog"))
    with pytest.raises(BadRequest, match="training images of mine must have labels from 0 to 1, not 5 to 6"):
        Stream("mine", spec, Samples(x, torch.arange(16) % 2 + 5), {}, StreamConfig(tasks=2, batch=4), seed=0)
    with pytest.raises(BadBatch, match=r"labels must be int64, not torch\.float32"):
        Samples(x, torch.zeros(16))
    for shape, classes in (((3, 16, 16), 2), ((3, 16, 16), ("a", "a")), ((3, 16, 16), ()), ((16, 16), ("a", "b"))):
        with pytest.raises(BadRequest, match="must be"):
            Spec(shape, classes)
    with pytest.raises(BadRequest, match="a learner is made for a stream"):
        make_learner("er", "fashion")


@pytest.mark.parametrize("method", ["er", "l2p"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_images_of_any_type_are_normalised_alike(method, dtype):
    """As bytes are: by the spec or, in a ViT, by its own mean and std."""
    spec = Spec((3, 16, 16), tuple("abcd"), mean=(0.1, 0.2, 0.3), std=0.25)
    of_bytes = toy_learner(method, spec=spec)
    of_floats = toy_learner(method, spec=dataclasses.replace(spec, dtype=dtype))
    for x, y, task in toy_batches(3):
        x = torch.where(x < 128, 0, 255).to(torch.uint8)  # exact in every type
        assert of_floats.observe((x / 255).to(dtype), y, task) == of_bytes.observe(x, y, task)
    assert torch.equal(of_floats.predict((x / 255).to(dtype)), of_bytes.predict(x))
    assert of_floats.memory.rows["x"].dtype == dtype


def test_a_vit_normalises_float_images_as_its_weights_know_them():
    spec = Spec((3, 16, 16), tuple("abcd"), dtype=torch.float32, mean=0.1, std=0.5)
    learner = make_learner("l2p", spec, **SMALL_VIT, pixel_mean=0.4, pixel_std=0.2)
    torch.testing.assert_close(learner.normalise(torch.ones(1, 3, 16, 16)), torch.full((1, 3, 16, 16), (1 - 0.4) / 0.2))


@pytest.mark.parametrize("replay_forward", ["joint", "separate"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("debias", ["none", "droptop"])
@pytest.mark.filterwarnings("ignore:the last map is 1 x 1")
def test_one_image_is_refused_where_batchnorm_cannot_take_it(method, debias, replay_forward):
    """And only there: where torch itself raises, some way into the step."""
    net = {"stem": "7x7/2-pool"} if METHODS[method].net_type is NetConfig else {}
    learner, unchecked = (toy_learner(method, debias, **net, replay_forward=replay_forward) for _ in range(2))
    unchecked.check_rows = lambda rows: None
    for one in (learner, unchecked):
        feed(one, toy_batches(3))
    x, y, task = toy_batches(1, size=1)[0]
    refusal = ""
    try:
        unchecked.observe(x, y, task)
    except ValueError as error:
        refusal = str(error)
    if refusal:
        assert "Expected more than 1 value per channel" in refusal
        before = snapshot(learner)
        with pytest.raises(BadBatch, match="a batch must hold 2 images or more: in this net BatchNorm gets one value"):
            learner.observe(x, y, task)
        assert not differences(before, snapshot(learner))
        assert method in ("mir", "finetune", "joint") or replay_forward == "separate"
        assert learner.observe(*toy_batches(1, size=2)[0]).isfinite()
    else:
        assert learner.observe(x, y, task).isfinite()


@pytest.mark.filterwarnings("ignore:the last map is 1 x 1")
def test_a_memory_batch_of_one_is_refused_where_batchnorm_cannot_take_it():
    coarse = {"stem": "7x7/2-pool", "memory_batch": 1}
    for method, options in (("er", {"replay_forward": "separate"}), ("mir", {"candidates": 1})):
        with pytest.raises(BadRequest, match=r"--memory-batch takes 2 samples or more in this net, .*, not 1"):
            toy_learner(method, **coarse, **options)
        toy_learner(method, **coarse | {"stem": "3x3"}, **options)
    for method, options in (("er", {}), ("mir", {}), ("derpp", {"replay_forward": "separate"}), ("finetune", {})):
        assert feed(toy_learner(method, **coarse, **options), toy_batches(3)).finite


class Running(Learner):
    """Weighs its loss by a mean of what it was before."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.mean_loss, self._scratch = torch.ones(()), torch.zeros(())

    def loss(self, logits, batch):
        loss = super().loss(logits, batch)
        self.mean_loss.lerp_(loss.detach(), 0.5)
        return loss / self.mean_loss


def test_tensors_that_a_method_keeps_are_state(monkeypatch):
    monkeypatch.setitem(METHODS, "running", Running)
    batches = toy_batches(6)
    whole, half, after = (toy_learner("running") for _ in range(3))
    feed(whole, batches), feed(half, batches[:3])
    state = {name: value.clone() for name, value in half.state_dict().items()}
    assert state["own.mean_loss"] != 1
    assert "own._scratch" not in state
    after.load_state_dict(state)
    feed(after, batches[3:])
    assert differences(whole.state_dict(), after.state_dict()) == []
    with torch.no_grad():
        after.model.fc.bias[0] = torch.nan
    before = after.mean_loss.clone()
    with pytest.raises(Diverged, match="as before it, but for its draws"):
        after.observe(*batches[0])
    assert after.mean_loss == before


def test_the_state_of_another_learner_is_refused():
    learner = toy_learner("er")
    before = {name: value.clone() for name, value in learner.state_dict().items()}
    for other in (toy_learner("er", "none"), toy_learner("er", width=8)):
        with pytest.raises(BadCheckpoint, match="this state is of another learner: "):
            learner.load_state_dict(other.state_dict())
    assert differences(before, learner.state_dict()) == []


def test_an_optimiser_that_cannot_skip_a_step_is_refused(monkeypatch):
    class Other(Learner):
        def make_optimizer(self, weights):
            return torch.optim.RMSprop(weights)

    monkeypatch.setitem(METHODS, "other", Other)
    with pytest.raises(BadRequest, match=r"make_optimizer gives .* not RMSprop"):
        toy_learner("other")


def test_joint_takes_one_task():
    with pytest.raises(BadRequest, match="--tasks takes 1"):
        make_learner("joint", make_stream("fashion"))
    assert len(make_learner("joint", make_stream("fashion", tasks=1)).spec.classes) == 10


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda x: x / 255, "images must be torch.uint8, not torch.float32"),
        (lambda x: x[..., :5], r"images must have shape \(batch, [\d, ]+\), not \(4, [\d, ]+, 5\)"),
        (lambda x: x[0], r"images must have shape \(batch, [\d, ]+\), not"),
        (lambda x: x.tolist(), "images must be a tensor, not list"),
    ],
)
def test_predict_refuses_images_of_another_kind(wrong, says):
    learner = toy_learner("er")
    x = torch.zeros(4, *learner.spec.shape, dtype=torch.uint8)
    with pytest.raises(BadBatch, match=says):
        learner.predict(wrong(x))
    with pytest.raises(BadBatch, match="there are 4 images and 3 labels"):
        Samples(x, torch.zeros(3, dtype=torch.int64))


def test_a_learner_that_has_learned_nothing_says_so():
    """Its predictions are no guess at all: every class is minus infinity, and an accuracy is NaN."""
    learner = toy_learner()
    x, y, _ = toy_batches(1)[0]
    with pytest.warns(UserWarning, match="has learned nothing yet, .*: all logits are minus infinity$") as said:
        assert learner.predict(x).isinf().all()
    assert said[0].filename == __file__
    with pytest.warns(UserWarning, match="has learned nothing yet, .*: nothing is counted, and an accuracy is NaN$"):
        assert math.isnan(droptop.accuracy(droptop.evaluate(learner, Samples(x, y))))
    learner.observe(x, y)
    learner.predict(x)
    restored = toy_learner(seed=1)
    restored.load_state_dict(learner.state_dict())
    assert droptop.evaluate(restored, Samples(x, y)) == droptop.evaluate(learner, Samples(x, y))
