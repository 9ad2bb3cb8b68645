import math

import pytest
import torch

from droptop import BadRequest, DropTop, DropTopConfig
from droptop.debias import Intensity, IntensityConfig, fuse
from droptop.rng import generator

from .attaching import attached
from toys import differences, feed, snapshot, toy_batches, toy_learner

FIRST = torch.rand(200, 6, 16, 16, generator=torch.Generator().manual_seed(1)) + 0.1
LAST = torch.rand(200, 9, 4, 4, generator=torch.Generator().manual_seed(2))
LABELS = torch.arange(200) % 4


def apply(**options):
    layer = DropTop(DropTopConfig(**options), 4, generator(0, "debias"))
    out = layer(FIRST, lambda: LAST, LABELS)
    return layer, out


def dropped_share(out):
    return (out == 0).all(1).float().mean().item()


@pytest.mark.parametrize("drop", ["adaptive", "top", "constant", "random"])
def test_gamma_percent_are_dropped_in_all(drop):
    _, out = apply(gamma=7.0, kappa_0=2.0, drop=drop)
    assert dropped_share(out) == pytest.approx(0.07, abs=1e-3)
    kept = (out != 0).any(1)
    assert torch.equal(out.permute(0, 2, 3, 1)[kept], FIRST.permute(0, 2, 3, 1)[kept])


def test_top_cells_are_those_of_the_fused_map():
    _, out = apply(drop="top", gamma=10.0)
    attention = fuse(FIRST, LAST)
    dropped = (out == 0).all(1)
    lowest_dropped = attention.masked_fill(~dropped, torch.inf).flatten(1).amin(1)
    highest_kept = attention.masked_fill(dropped, -torch.inf).flatten(1).amax(1)
    assert (lowest_dropped >= highest_kept).all()


def test_only_the_top_kappa_follow_attention():
    layer, _ = apply(gamma=10.0, kappa_0=4.0, drop="constant")
    mask, rank = layer.last.mask.flatten(1), layer.last.attention.flatten(1).argsort(1, descending=True)
    by_rank = mask.gather(1, rank)
    assert (by_rank[:, :10] == 0).all()  # 4% of 256 cells is 10.24
    assert by_rank[:, 11:].mean().item() == pytest.approx(1 - 0.06 * 256 / 245.76, abs=0.005)


def test_random_drops_never_run_the_attention_pass():
    def must_not():
        raise AssertionError("the attention pass costs a forward pass")

    DropTop(DropTopConfig(drop="random"), 4, generator(0, "debias"))(FIRST, must_not, LABELS)


def test_soft_mask_weakens_by_rank():
    layer, _ = apply(mask="soft", gamma=5.0, drop="top", rounding="nearest")  # 13 cells
    values = layer.last.mask[0].flatten().sort().values[:13]
    torch.testing.assert_close(values, torch.arange(1, 14) / 13)
    assert layer.last.mask[0].flatten()[layer.last.attention[0].argmax()] == pytest.approx(1 / 13)


def test_the_mask_lets_gradients_through_kept_cells_only():
    layer = DropTop(DropTopConfig(), 4, generator(0, "debias"))
    first = FIRST.clone().requires_grad_()
    layer(first, lambda: LAST, LABELS).sum().backward()
    assert torch.equal(first.grad, layer.last.mask[:, None].expand_as(first))


@pytest.mark.parametrize("norm", ["batch", "running"])
def test_the_attention_pass_leaves_no_trace(norm):
    """With p so long that no probe comes, a debiased learner's running statistics move only by training passes."""
    learner = toy_learner(period=1000, gamma=0.0, attention_norm=norm)
    calls = []
    learner.model.layer1.register_forward_hook(lambda module, x, y: calls.append(torch.is_grad_enabled()))
    x, y, _ = toy_batches(1)[0]
    before = learner.model.layer1[0].bn1.running_mean.clone()
    learner.observe(x, y)
    assert calls == [False, True]
    plain = toy_learner(debias="none")
    plain.observe(x, y)
    assert not torch.equal(before, plain.model.layer1[0].bn1.running_mean)
    assert torch.equal(learner.model.layer1[0].bn1.running_mean, plain.model.layer1[0].bn1.running_mean)


def test_attention_by_running_statistics_chooses_other_cells():
    """Their values are far from a batch's at first; the same cells are scored, and as many dropped."""
    traces = {}
    for norm in ("batch", "running"):
        learner = feed(toy_learner(period=1000, attention_norm=norm), toy_batches(1))
        traces[norm] = learner.trace
    assert not torch.equal(traces["batch"].attention, traces["running"].attention)
    assert torch.equal(traces["batch"].mask.sum((1, 2)), traces["running"].mask.sum((1, 2)))


def test_reference_trains_one_model_a_direction():
    learner = toy_learner(reference=True)
    asked = []
    kappa = learner.debias.droptop.kappa
    learner.debias.droptop.kappa = lambda labels, direction: asked.append(direction) or kappa(labels, direction)
    feed(learner, toy_batches(4))
    assert asked == [0, 1] * 4
    assert not torch.equal(learner.models["model"].fc.weight, learner.models["twin"].fc.weight)


def slow_mask(options, rows, stream):
    """The mask of `apply`, a sample and a cell at a time, from the same draws."""
    config, random, attention = DropTopConfig(**options), generator(0, "debias"), fuse(FIRST[:40], LAST[:40])
    uniform = torch.rand(40, generator=random)
    noise = torch.rand(attention.shape, generator=random)
    kappa = config.kappa_0 * config.intensity.alpha  # the decrement comes first
    mask = torch.ones(40, 256)
    for n in range(40):
        if (rows == "stream" and n >= stream) or (rows == "memory" and n < stream):
            continue
        order = sorted(range(256), key=lambda cell: -attention[n].flatten()[cell])
        top = order[: math.floor(kappa * 256 / 100 + uniform[n].double())]
        others = sorted(set(range(256)) - set(top), key=lambda cell: -noise[n].flatten()[cell])
        more = math.floor(config.gamma * 256 / 100 + uniform[n].double()) - len(top)
        for cell in top + (others[:more] if options.get("remainder") != "none" else []):
            mask[n, cell] = 0
    return mask.view(40, 16, 16)


@pytest.mark.parametrize("remainder", ["random", "none"])
@pytest.mark.parametrize(
    ("rows", "stream"), [("all", 15), ("stream", 15), ("memory", 15), ("stream", 0), ("memory", 40)]
)
def test_rows_and_cells_are_masked_as_a_slow_loop_does(rows, stream, remainder):
    options = {"gamma": 20.0, "kappa_0": 10.0, "remainder": remainder}
    layer = DropTop(DropTopConfig(**options, mask_rows=rows), 4, generator(0, "debias"))
    out = layer(FIRST[:40], lambda: LAST[:40], LABELS[:40], stream=stream)
    expected = slow_mask(options, rows, stream)
    assert torch.equal(layer.last.mask, expected)
    assert torch.equal(out, FIRST[:40] * expected[:, None])


@pytest.mark.parametrize("more", [{}, {"reference": True}, {"own": True}, {"iterations": 2}])
@pytest.mark.parametrize("replay_forward", ["joint", "separate"])
@pytest.mark.parametrize("rows", ["all", "stream", "memory"])
def test_a_learner_masks_the_rows_that_it_is_told_to(rows, replay_forward, more):
    """Eight rows of the stream, then six of the memory; masks are large enough to change every row."""
    learner = toy_learner(gamma=40.0, kappa_0=20.0, mask_rows=rows, replay_forward=replay_forward, **more)
    layer, changed, masks = learner.debias.droptop, [], []

    def watched(first, *given, forward=layer.forward, **named):
        out = forward(first, *given, **named)
        changed.append((out != first).flatten(1).any(1).tolist())
        masks.append(layer.last.mask)
        return out

    layer.forward = watched
    feed(learner, toy_batches(3))
    stream, memory = [rows != "memory"] * 8, [rows != "stream"] * 6
    a_pass = [stream + memory] if replay_forward == "joint" else [stream, memory]
    times = 2 if more.keys() & {"reference", "iterations"} else 1
    assert changed == a_pass * times * 3
    of_model = masks[-len(a_pass) * (2 if "reference" in more else 1)]
    assert torch.equal(learner.trace.mask, of_model[:8])
    assert (learner.trace.mask < 1).flatten(1).any(1).tolist() == stream
    assert (learner.trace.attention > 0).any()


def test_rows_that_nobody_can_tell_apart_are_refused():
    said = "--mask-rows takes all where nobody knows the memory's rows"
    with pytest.raises(BadRequest, match=said):
        attached(mask_rows="stream")
    with pytest.raises(BadRequest, match=said):
        apply(mask_rows="stream")
    with pytest.raises(BadRequest, match="--remainder takes random with --drop random"):
        DropTopConfig(drop="random", remainder="none")


@pytest.mark.parametrize(
    "options",
    [{"gamma": 0.0}, {"kappa_0": 0.0}, {"kappa_0": 0.0, "reference": True}, {"kappa_0": 0.0, "per": "common"}],
)
def test_an_intensity_of_zero_is_not_probed_since_nothing_would_come_of_it(options, monkeypatch):
    """The oracle is the learner that probes all the same."""
    batches, probes = toy_batches(10), []
    monkeypatch.setattr(
        Intensity, "record", lambda self, losses, record=Intensity.record: probes.append(record(self, losses))
    )
    without = feed(toy_learner(**options), batches)
    assert not probes
    monkeypatch.setattr(DropTop, "adapts", True)
    probed = feed(toy_learner(**options), batches)
    assert len(probes) == 10
    told = [f"debias.droptop.intensity.{name}" for name in ("loss", "history", "entries", "direction")]
    assert set(differences(snapshot(without), snapshot(probed))) <= set(told)
    assert without.debias.droptop.intensity.candidates.eq(0).all()


def test_reference_needs_an_adaptive_intensity():
    with pytest.raises(BadRequest, match="reference"):
        DropTopConfig(drop="random", intensity=IntensityConfig(reference=True))


def seen_by_trunk(learner):
    """Note the rows of every pass through the trunk from now on: the attention pass comes before the step's own."""
    rows, trunk = [], learner.model.trunk
    learner.model.trunk = lambda first, *given: rows.append(len(first)) or trunk(first, *given)
    return rows


@pytest.mark.parametrize(("replay_forward", "passes"), [("joint", [8, 14]), ("separate", [8, 8, 6])])
def test_kept_attention_is_that_of_the_stream(replay_forward, passes):
    """A row's attention is noted by its image when it comes; every replay, and the memory, must have that."""
    learner = toy_learner(memory_attention="kept", replay_forward=replay_forward, augment="none", drop="constant")
    layer, rows, noted = learner.debias.droptop, seen_by_trunk(learner), {}
    retrieve, replays = learner.retrieve, []
    learner.retrieve = lambda stream: replays.append(retrieve(stream)) or replays[-1]
    for x, y, task in toy_batches(6):
        rows.clear()
        learner.observe(x, y, task)
        assert rows == passes
        there = replays[-1]["there"]
        for image, at in zip(replays[-1]["x"][there], there.nonzero().flatten() - len(there)):
            assert torch.equal(layer.last.attention[at], noted[image.numpy().tobytes()])
        noted |= {image.numpy().tobytes(): attention for image, attention in zip(x, learner.trace.attention)}
    memory, size = learner.memory.rows, int(learner.memory.size)
    assert all(
        torch.equal(noted[image.numpy().tobytes()], attention)
        for image, attention in zip(memory["x"][:size], memory["attention"][:size])
    )


def test_rows_without_kept_attention_lose_cells_at_random():
    """In the first step, rows of the stream stand in for the memory's: what is dropped there has the highest noise."""
    learner = toy_learner(memory_attention="kept", gamma=20.0, kappa_0=20.0)
    learner.observe(*toy_batches(1)[0])
    trace, random = learner.debias.droptop.last, generator(0, "debias")
    torch.rand(14, generator=random)
    noise = torch.rand(trace.attention.shape, generator=random)
    assert torch.equal(trace.attention[8:], noise[8:])
    dropped = trace.mask[8:] == 0
    assert all(noise[8:][n][dropped[n]].min() > noise[8:][n][~dropped[n]].max() for n in range(6))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: toy_learner("finetune", memory_attention="kept"), "fresh with a method that replays nothing"),
        (lambda: toy_learner("slda", memory_attention="kept"), "fresh with a method that replays nothing"),
        (lambda: toy_learner(own=True, memory_attention="kept"), "a net that droptop builds"),
        (lambda: toy_learner(reference=True, memory_attention="kept"), "fresh beside --reference"),
        (lambda: toy_learner(debias="random", memory_attention="kept"), "fresh beside --drop random"),
        (lambda: attached(memory_attention="kept"), "fresh where nobody knows the memory's rows"),
    ],
)
def test_attention_is_not_kept_where_that_cannot_be(make, reason):
    with pytest.raises(BadRequest, match=f"--memory-attention.* {reason}"):
        make()
