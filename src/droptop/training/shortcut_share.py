"""Is it the shortcut that gets dropped? Measured against ground truth (the paper's Figure 2)."""

import torch
import torch.nn.functional as F
from torch import Tensor


def shortcut_share(mask_BHW: Tensor, shortcut: Tensor) -> Tensor:
    """What share of the dropped cells lies on the shortcut's pixels (B, height, width), and what share would if they
    were chosen at random; neither is a number where none was dropped."""
    dropped = 1 - mask_BHW
    height, width = dropped.shape[-2:]
    covered = F.adaptive_avg_pool2d(shortcut.to(dropped)[:, None], (height, width))[:, 0]
    total = dropped.sum()
    return torch.stack([(dropped * covered).sum() / total, torch.where(total > 0, covered.mean(), torch.nan)])
