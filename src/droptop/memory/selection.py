"""Drawing from the memory by weight, by class, or simply in order; all of them by index tensors alone."""

import torch
from torch import Tensor

from droptop.memory.buffer import Buffer


def first_free_slots(buffer: Buffer, count: int) -> Tensor:
    """The next `count` empty slots; `capacity` past the end."""
    return (buffer.size + torch.arange(count, device=buffer.size.device)).clamp(max=buffer.capacity)


def weighted_draw(weights: Tensor, count: int, generator: torch.Generator, none: int) -> Tensor:
    """`count` indices without replacement, each next one with probability proportional to its weight; `none` where
    there are too few. The first `count` arrivals of exponential clocks that run at these rates are such a draw."""
    clocks = torch.empty_like(weights).exponential_(generator=generator)
    drawn = ((weights + 1e-12) / clocks).topk(min(count, len(weights))).indices
    return torch.nn.functional.pad(drawn, (0, count - len(drawn)), value=none)


def balanced_draw(buffer: Buffer, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """`count` slots without replacement, a sample of every class in turn, and which of them are really there."""
    capacity, device = buffer.capacity, buffer.size.device
    keys = torch.rand(capacity, generator=generator, device=device)
    filled = buffer.filled()
    classes = torch.where(filled, buffer.rows["y"][:-1], torch.iinfo(torch.int64).max)
    # Sorted by class, and within a class at random, a row's turn is its distance from the first of its class.
    shuffled = keys.argsort()
    grouped = shuffled[classes[shuffled].argsort(stable=True)]
    in_order = classes[grouped]
    turn = torch.arange(capacity, device=device) - torch.searchsorted(in_order, in_order)
    turns = torch.empty_like(turn).scatter_(0, grouped, turn)
    among_turn = torch.rand(capacity, generator=generator, device=device)  # no class comes first in every turn
    order = torch.where(filled, turns + among_turn, torch.inf).argsort()
    slots = torch.nn.functional.pad(order[:count], (0, max(0, count - capacity)), value=capacity)
    return slots, torch.arange(count, device=device) < buffer.size
