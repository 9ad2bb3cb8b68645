"""Representation self-challenging against one sample at a time, by autograd and Python's sort."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from droptop import BadRequest
from droptop.debias import RSC, View
from droptop.debias.rsc import RSCConfig
from droptop.rng import generator

SAMPLES, CELLS = 12, 20
FIRST = torch.randn(SAMPLES, 3, 5, 4, generator=torch.Generator().manual_seed(1))
LABELS = torch.arange(SAMPLES) % 4
with torch.random.fork_rng():
    torch.manual_seed(0)
    NET = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(6 * CELLS, 4))
VIEW = View(None, NET)


def apply(first=FIRST, seed=0, **options):
    return RSC(RSCConfig(**options), 4, generator(seed, "debias")).first_map(first, VIEW, LABELS[: len(first)])


def muted_cells(before, after):
    """The cells of one sample that became 0; all others must be as they were, to the bit."""
    muted = (after == 0).all(0).flatten()
    assert torch.equal(after.flatten(1)[:, ~muted], before.flatten(1)[:, ~muted])
    return set(muted.nonzero().flatten().tolist())


def slow_ranking(sample, label):
    """The cells of one sample (c, h, w), that which raises the right logit most first."""
    watched = sample.clone().requires_grad_()
    (slope,) = torch.autograd.grad(NET(watched[None])[0, label], watched)
    weights = []
    for cell in range(CELLS):
        row, column = divmod(cell, 4)
        parts = [(slope * sample)[channel, row, column].item() for channel in range(3)]
        weights.append(sum(parts) / 3)
    return sorted(range(CELLS), key=lambda cell: -weights[cell])


@pytest.mark.parametrize("percent", [10.0, 37.0, 100.0])
def test_the_cells_that_raise_the_right_logit_most_are_muted(percent):
    wanted = percent * CELLS / 100
    for before, after, label in zip(FIRST, apply(percent=percent), LABELS):
        muted = muted_cells(before, after)
        assert len(muted) in (math.floor(wanted), math.ceil(wanted))
        assert muted == set(slow_ranking(before, label)[: len(muted)])


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_percents_are_met_on_average(share):
    """Of those that are challenged, which are no others than the ones of many cells."""
    counts = [
        len(muted_cells(before, after))
        for seed in range(100)
        for before, after in zip(FIRST, apply(seed=seed, percent=7, share=share))
    ]
    assert np.mean(counts) == pytest.approx(1.4 * share, abs=0.08)
    assert max(counts) == 2


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_a_share_of_the_samples_is_challenged(share):
    challenged = [
        not torch.equal(before, after)
        for seed in range(60)
        for before, after in zip(FIRST, apply(seed=seed, percent=20.0, share=share))
    ]
    assert np.mean(challenged) == pytest.approx(share, abs=0.06)


@pytest.mark.parametrize("options", [{"percent": 0.0}, {"share": 0.0}])
def test_no_strength_changes_nothing(options):
    assert torch.equal(apply(**options), FIRST)


def test_gradients_pass_kept_cells_and_no_look_ahead():
    first = FIRST.clone().requires_grad_()
    out = apply(first, percent=25.0)
    out.sum().backward()
    assert torch.equal(first.grad, (out != 0).to(first.dtype))
    assert all(weight.grad is None for weight in NET.parameters())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"percent": 101.0}, "--rsc.percent takes a percentage from 0 to 100, not 101.0"),
        ({"percent": float("nan")}, "--rsc.percent takes a percentage from 0 to 100, not nan"),
        ({"share": -1.0}, "--rsc.share takes a share from 0 to 1, not -1.0"),
    ],
)
def test_bad_settings_are_refused(options, says):
    with pytest.raises(BadRequest) as error:
        RSCConfig(**options)
    assert str(error.value) == says
