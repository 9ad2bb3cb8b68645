"""The drop mask, Eq. 5-6 of the DropTop paper: which cells of the first map are dropped?"""

from typing import Literal

import torch
from torch import Tensor

from droptop.array_checks import check_mask_parts

# Legend: B samples, HW the cells of the first map.

Rounding = Literal["stochastic", "nearest"]


def cell_counts(percent_B: Tensor, cells: int, uniform_B: Tensor, rounding: Rounding = "stochastic") -> Tensor:
    """Turn percentages of a map of so many cells into whole numbers of cells.

    5% of an 8 x 8 map is 3.2 cells. Rounded to the nearest, every kappa from 4 to 5.4 would drop the same 3 and
    shifting it would do nothing; floor(3.2 + u), with u uniform in [0, 1), drops 3.2 on average. The same u for kappa
    and gamma keeps top <= total.
    """
    offset = uniform_B if rounding == "stochastic" else 0.5
    return torch.floor(percent_B * cells / 100 + offset).long()


def ranks(scores: Tensor) -> Tensor:
    """Rank the scores of each row: 0 for the highest, 1 for the next; ties in order of position."""
    order = scores.argsort(dim=-1, descending=True, stable=True)
    positions = torch.arange(scores.shape[-1], device=scores.device).expand_as(order)
    return torch.empty_like(order).scatter_(-1, order, positions)


def highest(scores: Tensor, count_B: Tensor, most: int) -> Tensor:
    """Return which scores of each row are its `count` highest, at most `most`; ties in order of position.

    These are the cells that `ranks` puts below `count`, without sorting a whole map for a few of its cells.
    """
    best = scores.topk(most).values
    least = best.gather(1, (count_B - 1).clamp(min=0)[:, None])
    above, level = scores > least, scores == least
    room = count_B[:, None] - above.sum(1, keepdim=True)
    return above | (level & (level.cumsum(1) <= room))


def drop_mask(
    attention_BHW: Tensor,
    top_B: Tensor,
    total_B: Tensor,
    noise_BHW: Tensor,
    soft: bool = False,
    most: int | None = None,
) -> Tensor:
    """Make the drop mask of Eq. 5: drop the top cells by attention, and random others until `total` are dropped.

    Args:
        attention_BHW: Attention of every cell (B, h, w).
        top_B: Cells per sample to drop by attention: kappa.
        total_B: Cells per sample to drop in all: gamma.
        noise_BHW: Uniform random numbers in [0, 1), which choose the others.
        soft: Weaken the top cells instead (appendix E): of k cells, that of rank r (1 the highest) keeps r / k.
        most: A number that neither `top_B` nor `total_B` exceeds, where one is known: fewer cells are sorted then.

    Returns:
        The mask (B, h, w): 1 where a cell is kept, 0 where it is dropped.

    Raises:
        BadBatch: If shapes or types are others than these.
    """
    check_mask_parts(attention_BHW, top_B, total_B, noise_BHW)
    attention, noise = attention_BHW.flatten(1), noise_BHW.flatten(1)
    top_B, total_B = top_B.long(), total_B.long()  # of an unsigned 0, one less is the largest number
    most = attention.shape[1] if most is None else min(most, attention.shape[1])
    is_top = highest(attention, top_B, most)
    dropped = highest(torch.where(is_top, 2.0, noise), total_B, most)
    mask = (~dropped).to(attention.dtype)
    if soft:
        weakened = (ranks(attention) + 1) / top_B.clamp(min=1)[:, None]
        mask = torch.where(is_top, weakened.to(mask.dtype), mask)
    return mask.view_as(attention_BHW)


def apply_mask(first: Tensor, mask_BHW: Tensor) -> Tensor:
    """Multiply the first map (B, c, h, w) by the mask, the same for all channels: Eq. 6."""
    return first * mask_BHW[:, None].to(first.dtype)
