"""MixStyle against loops over samples and channels: what is mixed with what is read off the maps that come out."""

import numpy as np
import pytest
import torch
from scipy import stats

from droptop import BadRequest
from droptop.debias import MixStyle, View
from droptop.debias.mixstyle import MixStyleConfig, mix_style
from droptop.rng import generator

NO_VIEW = View(None, None)


def first_maps(samples, channels=3, seed=1):
    """Maps whose channels differ in mean and deviation, and so do those of other samples."""
    random = np.random.default_rng(seed)
    cells = random.normal(size=(samples, channels, 5, 4))
    cells = cells * random.uniform(0.5, 2, (samples, channels, 1, 1)) + random.normal(size=(samples, channels, 1, 1))
    return torch.tensor(cells, dtype=torch.float32)


def styles(maps):
    """The mean and the deviation of every channel of every sample, a loop."""
    return np.array([[[channel.mean(), np.sqrt(channel.var() + 1e-6)] for channel in one] for one in maps.numpy()])


def slow_mix(maps, other, mixture):
    """MixStyle as its paper writes it, one channel of one sample at a time."""
    style, mixed = styles(maps), np.empty(maps.shape)
    for row, one in enumerate(maps.numpy()):
        for channel, cells in enumerate(one):
            (mean, deviation), (mean_2, deviation_2) = style[row, channel], style[other[row], channel]
            share = mixture[row]
            gamma, beta = share * deviation + (1 - share) * deviation_2, share * mean + (1 - share) * mean_2
            mixed[row, channel] = gamma * (cells - mean) / deviation + beta
    return mixed


def apply(maps, seed=0, **options):
    member = MixStyle(MixStyleConfig(**options), 4, generator(seed, "debias"))
    return member.first_map(maps, NO_VIEW, torch.zeros(len(maps), dtype=torch.int64))


@pytest.mark.parametrize("channels", [1, 3])
def test_styles_are_mixed_as_the_paper_writes_it(channels):
    maps, other, mixture = first_maps(4, channels), [2, 0, 1, 3], [0.3, 0.9, 0.0, 0.5]
    fast = mix_style(maps, torch.tensor(other), torch.tensor(mixture))
    np.testing.assert_allclose(fast.numpy(), slow_mix(maps, other, mixture), atol=1e-5)


def test_styles_have_no_gradient():
    """The slope of a cell is then the quotient of deviations, whatever other cells are."""
    maps, other, mixture = first_maps(3).requires_grad_(), torch.tensor([1, 2, 0]), torch.tensor([0.2, 0.5, 0.8])
    weights = torch.randn(maps.shape, generator=generator(0, "weights"))
    (mix_style(maps, other, mixture) * weights).sum().backward()
    deviation = styles(maps.detach())[..., 1]
    for row in range(3):
        share = mixture[row].item()
        slope = (share * deviation[row] + (1 - share) * deviation[other[row]]) / deviation[row]
        expected = weights[row].numpy() * slope[:, None, None]
        np.testing.assert_allclose(maps.grad[row].numpy(), expected, rtol=1e-4, atol=1e-6)


def mixtures(maps, out):
    """By row of every sample that changed: whose style it took, and the share of its own; all channels must agree."""
    style, after, found = styles(maps), styles(out), {}
    for row in range(len(maps)):
        if torch.equal(maps[row], out[row]):
            continue
        fits = []
        for other in set(range(len(maps))) - {row}:
            way, gone = style[row] - style[other], after[row] - style[other]
            share = (gone * way).sum() / (way**2).sum()
            fits.append((np.abs(gone - share * way).max(), other, share))
        error, other, share = min(fits)
        assert error < 1e-4, "a style that is no mixture with that of one other sample"
        found[row] = (other, share)
    return found


def test_every_sample_takes_the_style_of_one_other_sample():
    maps = first_maps(16)
    out = apply(maps, share=1.0, alpha=2.0)
    found = mixtures(maps, out)
    others = [other for other, share in found.values() if share < 0.999]  # who is paired with itself keeps its style
    assert len(set(others)) == len(others) >= 12
    expected = slow_mix(maps, *zip(*(found.get(row, (row, 1.0)) for row in range(16))))
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-3)


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_mixtures_are_drawn_from_a_beta_distribution(alpha):
    maps, drawn = first_maps(16), []
    for seed in range(30):
        out = apply(maps, seed, share=1.0, alpha=alpha)
        drawn += [share for _, share in mixtures(maps, out).values()]
    assert stats.kstest(drawn, stats.beta(alpha, alpha).cdf).pvalue > 0.001


@pytest.mark.parametrize("share", [0.25, 0.7])
def test_a_share_of_the_samples_takes_part(share):
    maps = first_maps(20)
    changed = [
        not torch.equal(before, after)
        for seed in range(50)
        for before, after in zip(maps, apply(maps, seed, share=share, alpha=1.0))
    ]
    assert np.mean(changed) == pytest.approx(share, abs=0.06)


def test_a_share_of_nothing_changes_nothing():
    maps = first_maps(8)
    assert torch.equal(apply(maps, share=0.0), maps)


def test_the_dtype_of_maps_stays():
    for dtype in (torch.bfloat16, torch.float32):
        assert apply(first_maps(4).to(dtype), share=1.0).dtype == dtype


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"share": 1.1}, "--mixstyle.share takes a share from 0 to 1, not 1.1"),
        ({"share": float("nan")}, "--mixstyle.share takes a share from 0 to 1, not nan"),
        ({"alpha": 0.0}, "--mixstyle.alpha takes a number above 0, not 0.0"),
        ({"alpha": float("inf")}, "--mixstyle.alpha takes a number above 0, not inf"),
    ],
)
def test_bad_settings_are_refused(options, says):
    with pytest.raises(BadRequest) as error:
        MixStyleConfig(**options)
    assert str(error.value) == says
