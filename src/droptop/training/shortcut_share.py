"""The share of dropped cells that lie on the shortcut, by ground truth (the paper's Figure 2)."""

import torch
import torch.nn.functional as F
from torch import Tensor


def shortcut_share(mask_BHW: Tensor, shortcut: Tensor) -> Tensor:
    """Return the share of the dropped cells on the shortcut's pixels (B, height, width), and the share by chance.

    Chance is the share that would lie there if cells were dropped at random. Both are NaN where no cell is dropped.
    """
    dropped = 1 - mask_BHW
    height, width = dropped.shape[-2:]
    covered = F.adaptive_avg_pool2d(shortcut.to(dropped)[:, None], (height, width))[:, 0]
    total = dropped.sum()
    return torch.stack([(dropped * covered).sum() / total, torch.where(total > 0, covered.mean(), torch.nan)])
