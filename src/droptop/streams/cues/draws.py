"""Random numbers that belong to an image: a hash of a seed and the image's number, the same in any order and batch.

No generator is moved and nothing is kept, so an image read from a disk, on a GPU or after a resume draws what it drew
before. In names of tensors, N counts images.
"""

import torch
from torch import Tensor

# The multipliers of SplitMix64 (Steele et al., 2014), as signed integers.
STEP, FIRST, SECOND = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15
BITS = 24  # of a draw: as many as a float32 holds exactly


def draws(seed: int, numbers_N: Tensor, count: int) -> Tensor:
    """Return `count` numbers in [0, 1) per image, uniform, by a seed and the images' numbers (N, count)."""
    column = torch.arange(1, count + 1, device=numbers_N.device)
    mixed = scrambled(scrambled(numbers_N * STEP + seed)[:, None] + column * STEP)
    return shifted(mixed, 64 - BITS).to(torch.float32) / 2**BITS


def scrambled(bits: Tensor) -> Tensor:
    """Return int64 numbers in which every bit depends on every bit they had, as SplitMix64 ends."""
    bits = (bits ^ shifted(bits, 30)) * FIRST
    bits = (bits ^ shifted(bits, 27)) * SECOND
    return bits ^ shifted(bits, 31)


def shifted(bits: Tensor, by: int) -> Tensor:
    """Return int64 numbers shifted to the right with zeros from the left, as unsigned numbers are."""
    return (bits >> by) & ((1 << (64 - by)) - 1)


def whole(draws_N: Tensor, choices: int) -> Tensor:
    """Return whole numbers from 0 to `choices` - 1 from uniform draws."""
    return (draws_N * choices).long().clamp(max=choices - 1)  # a product may round up to `choices`


def cues_of(labels_N: Tensor, correlation: float, classes: int, draws_N2: Tensor) -> Tensor:
    """Return a cue per image: that of its class with probability `correlation`, else one of the others."""
    other = (labels_N + 1 + whole(draws_N2[:, 1], classes - 1)) % classes
    return torch.where(draws_N2[:, 0] < correlation, labels_N, other)


def content_numbers(x: Tensor) -> Tensor:
    """Return a number per image (N) that depends on its pixels alone, for images that have no place in a set."""
    of_one_byte = x.flatten(1) if x.dtype == torch.uint8 else x.flatten(1).contiguous().view(torch.uint8)
    weights = scrambled(torch.arange(of_one_byte.shape[1], device=x.device)) | 1
    return (of_one_byte.long() * weights).sum(1)
