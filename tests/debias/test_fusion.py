import pytest
import torch

from droptop.debias import fuse, last_only


def test_fuse_by_hand():
    first = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]], [[3.0, 2.0], [1.0, 0.0]]]])  # channel mean: 2 2 / 2 2
    last = torch.tensor([[[[1.0]], [[2.0]], [[6.0]]]])  # channel mean: 3, everywhere once upsampled
    assert torch.equal(fuse(first, last), torch.full((1, 2, 2), 6.0))
    first[0, 0, 1, 1] = 8.0  # its cell's channel mean is now 4
    assert torch.equal(fuse(first, last), torch.tensor([[[6.0, 6.0], [6.0, 12.0]]]))


def test_upsampling_is_bilinear_by_hand():
    first = torch.ones(1, 1, 4, 4)
    last = torch.tensor([[[[0.0, 4.0], [0.0, 4.0]], [[0.0, 4.0], [0.0, 4.0]]]])
    # Cell centres of the fine grid lie at -1/4, 1/4, 3/4, 5/4 of the coarse one; outside, the edge is held.
    assert torch.equal(fuse(first, last), torch.tensor([0.0, 1.0, 3.0, 4.0]).expand(1, 4, 4))


def test_equal_channels_multiply_before_averaging():
    first = torch.tensor([1.0, -1.0]).view(1, 2, 1, 1)
    last = torch.tensor([5.0, -5.0]).view(1, 2, 1, 1)
    assert fuse(first, last).item() == 5.0  # averaging first would give 0


def test_last_only_ignores_the_first_map():
    last = torch.rand(2, 6, 2, 2)
    assert torch.equal(last_only(torch.rand(2, 3, 8, 8), last), last_only(torch.rand(2, 3, 8, 8), last))
    assert last_only(torch.rand(2, 3, 8, 8), last).shape == (2, 8, 8)


def test_scores_of_halves_do_not_overflow():
    """300 * 300 is no number of float16."""
    x = torch.full((1, 4, 2, 2), 300.0, dtype=torch.float16)
    assert torch.equal(fuse(x, x), torch.full((1, 2, 2), 90000.0))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@pytest.mark.parametrize("channels", [3, 5])
def test_scores_are_float32_whatever_the_maps_are(dtype, channels):
    first, last = torch.rand(2, 3, 4, 4, dtype=dtype), torch.rand(2, channels, 2, 2, dtype=dtype)
    assert fuse(first, last).dtype == last_only(first, last).dtype == torch.float32
