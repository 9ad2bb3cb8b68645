"""Prompts: prefixes that are learned for a frozen ViT, and keys by which each sample chooses among them.

A pool of P prompts is one tensor (P, blocks, 2, length, heads, e): for every block that it serves, keys and values for
its attention. A sample takes the prompts whose keys have the largest cosine with its query.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from droptop.nets.backbone import Backbone, Features
from droptop.nets.vit import ViT

# Legend: P prompts in the pool, B samples, k prompts per sample, l length, d width, e = d / heads.


class Prompted(Backbone):
    """A backbone of a frozen ViT, a trained head and trained prompts."""

    def __init__(self, vit: ViT, prompts: nn.Module) -> None:
        super().__init__()
        self.vit, self.prompts = vit.requires_grad_(False), prompts
        vit.classifier.requires_grad_(True)

    def stem(self, x: Tensor) -> Tensor:
        return self.vit.stem(x)

    def trunk(self, first: Tensor, *given: Any) -> Features:
        return self.vit.trunk(first, *given)

    def head(self, features: Features) -> Tensor:
        return self.vit.head(features)


def new_prompts(vit: ViT, count: int, blocks: int, length: int) -> nn.Parameter:
    """Draw a pool of prompts, uniform in [-1, 1]."""
    shape = (count, blocks, 2, length, vit.heads, vit.width // vit.heads)
    return nn.Parameter(torch.empty(shape).uniform_(-1, 1))


def new_keys(vit: ViT, count: int) -> nn.Parameter:
    """Draw keys, uniform in [-1, 1]."""
    return nn.Parameter(torch.empty(count, vit.width).uniform_(-1, 1))


def cosines(query_Bd: Tensor, keys_Pd: Tensor) -> Tensor:
    """Return the cosines (B, P) of queries and keys, in full precision also where matrix products are rounded."""
    return (F.normalize(query_Bd, dim=1)[:, None] * F.normalize(keys_Pd, dim=1)).sum(2)


def choose(similarity_BP: Tensor, count: int, by_vote: bool = False) -> Tensor:
    """Return the most similar prompts (B, k) of every sample or, `by_vote`, for all those that most samples choose."""
    choice = similarity_BP.topk(count).indices
    if by_vote:
        choice = taken(choice, similarity_BP.shape[1]).sum(0).topk(count).indices.expand_as(choice)
    return choice


def taken(choice_Bk: Tensor, prompts: int) -> Tensor:
    """Return whether each sample takes each prompt (B, P)."""
    return (choice_Bk[:, :, None] == torch.arange(prompts, device=choice_Bk.device)).any(1)


def chosen_prefixes(pool: Tensor, choice_Bk: Tensor, start: int = 0) -> dict[int, Tensor]:
    """Return each sample's prompts, joined as prefixes (2, B, heads, k * l, e) of every block from `start` on."""
    prefixes = pool[choice_Bk].permute(2, 3, 0, 5, 1, 4, 6).flatten(4, 5)  # from B, k, blocks, 2, l, heads, e
    return {start + block: prefix for block, prefix in enumerate(prefixes)}


def shared_prefixes(pool: Tensor, samples: int, start: int = 0) -> dict[int, Tensor]:
    """Return the only prompt of a pool as the prefixes of all samples, by block."""
    prefixes = pool.permute(1, 2, 0, 4, 3, 5).expand(-1, -1, samples, -1, -1, -1)  # from 1, blocks, 2, l, heads, e
    return {start + block: prefix for block, prefix in enumerate(prefixes)}
