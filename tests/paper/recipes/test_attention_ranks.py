import numpy as np
import pytest

from droptop.paper.recipes.attention_ranks import share_by_rank


def test_a_model_that_attends_to_the_shortcut_alone():
    covered = np.zeros((2, 4, 5))
    covered[0, 1, 2] = covered[1, 3, 4] = 1
    attention = covered * 5 - 1
    assert share_by_rank(attention, covered).tolist() == [0.0] * 19 + [1.0]
    assert share_by_rank(-attention, covered).tolist() == [1.0] + [0.0] * 19


def test_by_a_slow_loop_and_whatever_the_map_s_size():
    random = np.random.default_rng(0)
    for side in (5, 8, 16):
        attention, covered = random.normal(size=(7, side, side)), random.random((7, side, side))
        cells, sums, counts = side * side, np.zeros(20), np.zeros(20)
        for scores, covers in zip(attention.reshape(7, -1), covered.reshape(7, -1)):
            for score, share in zip(scores, covers):
                bin_of = (scores < score).sum() * 20 // cells
                sums[bin_of] += share
                counts[bin_of] += 1
        shares = share_by_rank(attention, covered)
        assert shares == pytest.approx(sums / counts)
        assert np.average(shares, weights=counts) == pytest.approx(covered.mean())  # chance, over all bins


def test_a_map_with_fewer_cells_than_bins_leaves_some_empty():
    shares = share_by_rank(np.arange(4.0).reshape(1, 2, 2), np.ones((1, 2, 2)))
    assert np.isnan(shares).sum() == 16
    assert np.nansum(shares) == 4
