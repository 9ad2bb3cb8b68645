"""Feature-map fusion, Eq. 4 of the DropTop paper (Kim et al., AAAI-24): where does the model look?"""

import torch
import torch.nn.functional as F
from torch import Tensor

FULL = torch.float32  # of scores, whatever the maps were computed in: cells must not tie for want of digits

# Legend: B samples; c, h, w the first map; c', h', w' the last one.


def upsample(last: Tensor, like: Tensor) -> Tensor:
    """The last map at the resolution of the first one."""
    if last.shape[-2:] == like.shape[-2:]:
        return last
    return F.interpolate(last, size=like.shape[-2:], mode="bilinear", align_corners=False)


def fuse(first: Tensor, last: Tensor) -> Tensor:
    """Attention (B, h, w): what both the first map (B, c, h, w) and the last one (B, c', h', w') respond to.

    With equal channels (a ViT) this is Eq. 4 to the letter: multiply, then average over channels. Otherwise (a
    ResNet) each map is averaged over its own channels before they are multiplied.
    """
    if first.shape[1] == last.shape[1]:
        return (first.to(FULL) * upsample(last.to(FULL), first)).mean(1)
    return first.mean(1, dtype=FULL) * upsample(last.mean(1, keepdim=True, dtype=FULL), first).squeeze(1)


def last_only(first: Tensor, last: Tensor) -> Tensor:
    """Attention (B, h, w) of the ablation "No MF": the upsampled last map alone."""
    return upsample(last.mean(1, keepdim=True, dtype=FULL), first).squeeze(1)
