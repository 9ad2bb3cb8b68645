"""Prompts: prefixes that are learned for a frozen ViT, and keys by which a sample finds its own among several.

A pool of P prompts is one tensor (P, blocks, 2, length, heads, e): for every block it stands in, keys and values of its
attention. A sample takes those prompts whose keys have the largest cosine with its query.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from droptop.nets.backbone import Backbone, Features
from droptop.nets.vit import ViT

# Legend: P prompts in the pool, B samples, k prompts a sample takes, l length, d width, e = d / heads.


class Prompted(Backbone):
    """A frozen ViT, whose head is trained, and the prompts that go with it."""

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
    """A pool of them, uniform in [-1, 1]."""
    shape = (count, blocks, 2, length, vit.heads, vit.width // vit.heads)
    return nn.Parameter(torch.empty(shape).uniform_(-1, 1))


def new_keys(vit: ViT, count: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(count, vit.width).uniform_(-1, 1))


def cosines(query_Bd: Tensor, keys_Pd: Tensor) -> Tensor:
    """B, P; products and sums in full precision, whatever matrix products are rounded to."""
    return (F.normalize(query_Bd, dim=1)[:, None] * F.normalize(keys_Pd, dim=1)).sum(2)


def choose(similarity_BP: Tensor, count: int, together: bool = False) -> Tensor:
    """B, k: the most similar prompts of every sample or, `together`, those that most samples would take, for all."""
    choice = similarity_BP.topk(count).indices
    if together:
        choice = taken(choice, similarity_BP.shape[1]).sum(0).topk(count).indices.expand_as(choice)
    return choice


def taken(choice_Bk: Tensor, prompts: int) -> Tensor:
    """B, P: does this sample take this prompt?"""
    return (choice_Bk[:, :, None] == torch.arange(prompts, device=choice_Bk.device)).any(1)


def chosen_prefixes(pool: Tensor, choice_Bk: Tensor, start: int = 0) -> dict[int, Tensor]:
    """Each sample's prompts one after another, as prefixes (2, B, heads, k * l, e) of every block from `start` on."""
    laid = pool[choice_Bk].permute(2, 3, 0, 5, 1, 4, 6).flatten(4, 5)  # from B, k, blocks, 2, l, heads, e
    return {start + block: prefix for block, prefix in enumerate(laid)}


def shared_prefixes(pool: Tensor, samples: int, start: int = 0) -> dict[int, Tensor]:
    """The only prompt of a pool as the prefixes of all samples."""
    laid = pool.permute(1, 2, 0, 4, 3, 5).expand(-1, -1, samples, -1, -1, -1)  # from 1, blocks, 2, l, heads, e
    return {start + block: prefix for block, prefix in enumerate(laid)}
