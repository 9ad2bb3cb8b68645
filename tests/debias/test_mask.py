import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from droptop.debias import cell_counts, drop_mask
from droptop.debias.mask import highest, ranks


def slow_mask(attention, top, total, noise, soft):
    """Eq. 5 and the random remainder for one sample, cell by cell."""
    cells = [(i, j) for i in range(attention.shape[0]) for j in range(attention.shape[1])]
    by_attention = sorted(cells, key=lambda cell: -attention[cell].item())
    chosen = by_attention[:top]
    rest = sorted((cell for cell in cells if cell not in chosen), key=lambda cell: -noise[cell].item())
    mask = torch.ones_like(attention)
    for rank, cell in enumerate(chosen, 1):
        mask[cell] = rank / top if soft else 0.0
    for cell in rest[: total - top]:
        mask[cell] = 0.0
    return mask


@given(
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.integers(1, 6),
    st.floats(0, 1),
    st.floats(0, 1),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_drop_mask_against_a_slow_loop(seed, height, width, share, top_share, soft, ties, bounded):
    random = torch.Generator().manual_seed(seed)
    attention = torch.randn(3, height, width, generator=random)
    if ties:
        attention = attention.round()
    noise = torch.rand(3, height, width, generator=random)
    total = torch.tensor([int(share * height * width)] * 2 + [0])
    top = (total * top_share).long()
    mask = drop_mask(attention, top, total, noise, soft, max(1, int(total.max())) if bounded else None)
    for sample in range(3):
        expected = slow_mask(attention[sample], int(top[sample]), int(total[sample]), noise[sample], soft)
        assert torch.equal(mask[sample], expected)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32], ids=str)
def test_counts_may_be_integers_of_any_width(dtype):
    """The mask reads the cell before each count, and an unsigned 0 has none before it."""
    attention, noise = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    top, total = torch.tensor([0, 2, 16]), torch.tensor([0, 5, 16])
    mask = drop_mask(attention, top.to(dtype), total.to(dtype), noise)
    assert torch.equal(mask, drop_mask(attention, top, total, noise))
    assert (1 - mask).sum((1, 2)).tolist() == [0, 5, 16]


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 40), st.integers(0, 4))
def test_the_highest_are_those_of_the_first_ranks(seed, cells, most, levels):
    """Few levels make many ties; the bound may be any number that no count exceeds."""
    random, most = torch.Generator().manual_seed(seed), min(cells, most)
    scores = torch.randint(-levels, levels + 1, (50, cells), generator=random).float()
    counts = torch.randint(0, most + 1, (50,), generator=random)
    assert torch.equal(highest(scores, counts, most), ranks(scores) < counts[:, None])


def test_remainder_is_uniform_among_kept_cells():
    attention = torch.arange(16.0).view(1, 4, 4).expand(4000, 4, 4)
    noise = torch.rand(4000, 4, 4, generator=torch.Generator().manual_seed(0))
    mask = drop_mask(attention, torch.full((4000,), 2), torch.full((4000,), 5), noise)
    dropped = (1 - mask).mean(0).flatten()
    assert torch.equal(dropped[14:], torch.ones(2))
    assert (dropped[:14] - 3 / 14).abs().max() < 4 * math.sqrt(3 / 14 * 11 / 14 / 4000)


def test_stochastic_rounding_keeps_the_mean_and_the_order():
    uniform = torch.rand(20000, generator=torch.Generator().manual_seed(0))
    top = cell_counts(torch.full((20000,), 4.5), 64, uniform)  # 2.88 cells
    total = cell_counts(torch.full((20000,), 5.0), 64, uniform)  # 3.2 cells
    assert top.float().mean().item() == pytest.approx(2.88, abs=0.01)
    assert total.float().mean().item() == pytest.approx(3.2, abs=0.01)
    assert (top <= total).all()
    assert set(top.tolist()) == {2, 3}
    assert cell_counts(torch.tensor([4.5, 5.4, 0.0, 100.0]), 64, uniform[:4], "nearest").tolist() == [3, 3, 0, 64]


def test_gamma_0_drops_nothing():
    uniform = torch.tensor([0.0, 1 - 2**-24])
    assert cell_counts(torch.zeros(2), 64, uniform).tolist() == [0, 0]
    none = torch.zeros(2, dtype=torch.int64)
    assert drop_mask(torch.rand(2, 8, 8), none, none, torch.rand(2, 8, 8)).min() == 1
