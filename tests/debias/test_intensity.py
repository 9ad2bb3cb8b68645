import collections
import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from droptop.debias import Intensity, IntensityConfig, group_losses, pooled_t
from droptop.debias.intensity import random_keys


@given(st.integers(0, 10**6), st.integers(2, 20), st.floats(-2, 2))
def test_t_test_agrees_with_scipy(seed, length, shift):
    random = np.random.default_rng(seed)
    a, b = random.normal(shift, 1, (5, length)), random.normal(0, 1, (5, length))
    ours = pooled_t(torch.from_numpy(a), torch.from_numpy(b))
    theirs = stats.ttest_ind(a, b, axis=1, alternative="greater")
    np.testing.assert_allclose(ours, theirs.statistic, rtol=1e-9)
    critical = Intensity(IntensityConfig(history=length), 1, 5, 5).critical
    assume(np.abs(np.abs(theirs.statistic) - critical).min() > 1e-9)
    assert ((ours >= critical).numpy() == (theirs.pvalue <= 0.05)).all()
    assert ((ours <= -critical).numpy() == (theirs.pvalue >= 0.95)).all()


def test_group_losses_by_hand():
    losses = torch.tensor([1.0, 3.0, 5.0, 100.0])
    means = group_losses(losses, torch.tensor([0, 0, 2, 2]), torch.tensor([True, True, True, False]), 4)
    assert means[[0, 2]].tolist() == [2.0, 5.0]
    assert means[[1, 3]].isnan().all()


def test_a_probe_draws_any_set_of_the_samples_held_as_often():
    """Three of six rows that hold a sample, of ten: 20 sets, whose counts a chi-squared test compares."""
    intensity, random = Intensity(IntensityConfig(probe=3), 1, 5, 5), torch.Generator().manual_seed(0)
    held = torch.zeros(10, dtype=torch.bool)
    held[[0, 1, 4, 5, 7, 9]] = True
    counts = collections.Counter(frozenset(intensity.probed(held, random).tolist()) for _ in range(4000))
    assert set(counts) == {frozenset(three) for three in itertools.combinations([0, 1, 4, 5, 7, 9], 3)}
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_a_probe_of_more_than_is_held_takes_these_first():
    intensity, random = Intensity(IntensityConfig(probe=4), 1, 5, 5), torch.Generator().manual_seed(0)
    held = torch.tensor([True, False, True, False, False])
    rows = intensity.probed(held, random).tolist()
    assert (set(rows[:2]), len(set(rows))) == ({0, 2}, 4)
    assert sorted(intensity.probed(held[:3], random).tolist()) == [0, 1, 2]


@given(st.integers(0, 10**6), st.integers(0, 300), st.integers(0, 300))
def test_the_key_of_a_row_and_the_next_draw_do_not_depend_on_the_number_of_rows(seed, rows, more):
    one, other = (torch.Generator().manual_seed(seed) for _ in range(2))
    few, many = random_keys(rows, one), random_keys(rows + more, other)
    assert torch.equal(few, many[:rows])
    assert torch.equal(one.get_state(), other.get_state())
    assert len(set(many.tolist())) == rows + more
    assert all(0 <= key < 2**32 for key in many.tolist())


def slow_shifting(losses, kappa, gamma, config):
    """Algorithm 2 for one class as a person would write it; gives kappa' after every probe."""
    clip = lambda value: min(value, gamma)  # noqa: E731
    candidates = [clip(kappa * config.alpha), clip(kappa / config.alpha)]
    histories, old, direction, out = ([], []), math.nan, 0, []
    for new in losses:
        if math.isfinite(old - new):
            histories[direction].append(old - new)
        old, direction = new, 1 - direction
        if all(len(history) >= config.history for history in histories):
            dec, inc = (history[-config.history :] for history in histories)
            p = stats.ttest_ind(dec, inc, alternative="greater").pvalue
            if p <= config.significance:
                kappa = candidates[0]
                candidates = (
                    [clip(kappa * config.alpha), clip(kappa / config.alpha)]
                    if config.shift == "eq7"
                    else [kappa * config.alpha, kappa]
                )
            elif p >= 1 - config.significance:
                kappa = candidates[1]
                candidates = (
                    [clip(kappa * config.alpha), clip(kappa / config.alpha)]
                    if config.shift == "eq7"
                    else [kappa if kappa < gamma else kappa * config.alpha, clip(kappa / config.alpha)]
                )
            histories = ([], [])
        out.append((kappa, *candidates))
    return out


@pytest.mark.parametrize("shift", ["eq7", "algorithm2"])
@given(st.integers(0, 10**6), st.floats(-1, 1), st.sampled_from([2, 3, 5]), st.floats(0, 0.2))
def test_shifting_against_a_slow_loop(shift, seed, trend, history, missing):
    config = IntensityConfig(history=history, shift=shift, significance=0.3)
    random = np.random.default_rng(seed)
    # A zigzag: what even blocks take off the loss differs from what odd ones do by `trend`.
    steps = random.normal(0, 0.3, (60, 2)) + trend * (np.arange(60) % 2)[:, None]
    losses = np.where(random.random((60, 2)) < missing, np.nan, 10 - steps.cumsum(0))
    intensity = Intensity(config, 2, 3.0, 5.0)
    expected = [slow_shifting(losses[:, group].tolist(), 3.0, 5.0, config) for group in range(2)]
    for probe, row in enumerate(losses):
        intensity.record(torch.from_numpy(row))
        for group in range(2):
            ours = (intensity.kappa[group], intensity.candidates[0, group], intensity.candidates[1, group])
            assert [float(value) for value in ours] == pytest.approx(expected[group][probe], rel=1e-12)
    assert (intensity.candidates <= 5).all()


def blocks(intensity, decrement, increment, count):
    """Feeds losses of which decrement blocks take off one amount and increment blocks another, with a little noise."""
    random, loss = np.random.default_rng(0), 100.0
    intensity.loss.fill_(math.nan)  # what was before is not compared with
    intensity.record(torch.tensor([loss], dtype=torch.float64))
    for _ in range(count):
        loss -= (increment if intensity.direction else decrement) + random.normal(0, 1e-3)
        intensity.record(torch.tensor([loss], dtype=torch.float64))


def test_kappa_follows_the_better_direction():
    for decrement, increment, expected in ((2.0, 1.0, 4 * 0.9), (1.0, 2.0, 4 / 0.9), (1.0, 1.0, 4.0)):
        intensity = Intensity(IntensityConfig(), 1, 4.0, 5.0)
        blocks(intensity, decrement, increment, 20)
        assert intensity.kappa.item() == pytest.approx(expected)
        assert intensity.entries.sum() == 0


def test_kappa_never_exceeds_gamma():
    intensity = Intensity(IntensityConfig(history=2), 1, 5.0, 5.0)
    blocks(intensity, 1.0, 2.0, 40)
    assert intensity.kappa.item() == 5.0
    assert intensity.candidates.max() == 5.0
    assert Intensity(IntensityConfig(), 1, 8.0, 5.0).kappa.item() == 5.0


@given(st.integers(0, 10**6), st.floats(0.5, 5), st.floats(0, 1))
def test_algorithm_2_never_compares_an_intensity_with_itself(seed, kappa_0, rising):
    """Wherever it goes, also along the ceiling."""
    intensity = Intensity(IntensityConfig(history=2, significance=0.3, shift="algorithm2"), 1, kappa_0, 5.0)
    random, loss = np.random.default_rng(seed), 100.0
    for _ in range(40):
        loss -= random.normal(0, 1) + (rising if intensity.direction else 0)
        intensity.record(torch.tensor([loss], dtype=torch.float64))
        down, up = intensity.candidates[:, 0].tolist()
        assert down < up <= 5


def test_algorithm_2_leaves_the_ceiling_when_less_is_better():
    intensity = Intensity(IntensityConfig(shift="algorithm2", history=3), 1, 4.9, 5.0)
    for _ in range(2):  # where more is still better it stays
        blocks(intensity, 1.0, 2.0, 6)
        assert (intensity.kappa.item(), intensity.candidates[:, 0].tolist()) == (5.0, [4.5, 5.0])
    blocks(intensity, 2.0, 1.0, 6)
    assert intensity.kappa.item() == 4.5
    assert intensity.candidates[:, 0].tolist() == pytest.approx([4.05, 4.5])


def test_no_variance_and_no_difference_decides_nothing():
    intensity = Intensity(IntensityConfig(history=2), 1, 4.0, 5.0)
    for _ in range(8):
        intensity.record(torch.tensor([1.0], dtype=torch.float64))
    assert intensity.kappa.item() == 4.0


def test_a_class_without_samples_records_nothing():
    intensity = Intensity(IntensityConfig(), 2, 4.0, 5.0)
    for loss in (math.nan, math.nan, 3.0, 2.0, math.nan, 1.0):
        intensity.record(torch.tensor([1.0, loss], dtype=torch.float64))
    assert intensity.entries[:, 0].tolist() == [2, 3]
    assert intensity.entries[:, 1].tolist() == [0, 1]  # only 3 -> 2 has both ends
    assert intensity.history[1, 1, -1] == 1.0


def test_each_direction_has_its_own_model_in_the_reference():
    intensity = Intensity(IntensityConfig(history=2), 1, 4.0, 5.0)
    for down, up in ((9.0, 9.0), (8.0, 5.0), (7.0, 1.0)):
        intensity.record(torch.tensor([[down], [up]], dtype=torch.float64))
    assert intensity.history[0, 0, -1] == 1.0  # 8 -> 7 by the decrement's model
    assert intensity.history[1, 0, -1] == 4.0  # 9 -> 5 by the increment's


def test_common_intensity_is_one_for_all():
    intensity = Intensity(IntensityConfig(per="common"), 1, 4.0, 5.0)
    assert intensity.current(torch.tensor([0, 3, 9])).tolist() == [4.0 * 0.9] * 3
