import pytest
import torch

from droptop import BadRequest, DropTop, DropTopConfig
from droptop.debias import Intensity, IntensityConfig, fuse
from droptop.rng import generator

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
