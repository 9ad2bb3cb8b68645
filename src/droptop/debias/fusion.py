"""Feature-map fusion, Eq. 4 of the DropTop paper (Kim et al., AAAI-24): which cells does the model attend to?"""

import torch
import torch.nn.functional as F
from torch import Tensor

from droptop.array_checks import check_maps

FULL = torch.float32  # dtype of scores, also where maps are in bfloat16: rounding must not make cells tie

# Legend: B samples; c, h, w the first map; c', h', w' the last one.


def upsample(last: Tensor, like: Tensor) -> Tensor:
    """Resize the last map (bilinear) to the height and width of `like`, the first one."""
    if last.shape[-2:] == like.shape[-2:]:
        return last
    return F.interpolate(last, size=like.shape[-2:], mode="bilinear", align_corners=False)


def fuse(first: Tensor, last: Tensor) -> Tensor:
    """Compute attention by Eq. 4: it is high where both maps respond.

    With equal channels (a ViT) this is Eq. 4 to the letter: multiply, then average over channels. Otherwise (a
    ResNet) each map is averaged over its own channels before they are multiplied.

    Args:
        first: The first map (B, c, h, w).
        last: The last map (B, c', h', w'), of any smaller size.

    Returns:
        Attention (B, h, w), float32.

    Raises:
        BadBatch: If these are no maps, or not of the same samples.
    """
    check_maps(first, last)
    if first.shape[1] == last.shape[1]:
        return (first.to(FULL) * upsample(last.to(FULL), first)).mean(1)
    return first.mean(1, dtype=FULL) * upsample(last.mean(1, keepdim=True, dtype=FULL), first).squeeze(1)


def last_only(first: Tensor, last: Tensor) -> Tensor:
    """Compute attention (B, h, w) by the upsampled last map alone: the ablation "No MF"."""
    return upsample(last.mean(1, keepdim=True, dtype=FULL), first).squeeze(1)
