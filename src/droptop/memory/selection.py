"""Rules that choose slots of the memory: by weight, by class, or the next free ones; all by index tensors alone."""

import torch
from torch import Tensor

from droptop.memory.buffer import Buffer


def first_free_slots(buffer: Buffer, count: int) -> Tensor:
    """Return the next `count` free slots; `capacity` where there are no more."""
    return (buffer.size + torch.arange(count, device=buffer.size.device)).clamp(max=buffer.capacity)


def weighted_draw(weights: Tensor, count: int, generator: torch.Generator, none: int) -> Tensor:
    """Draw `count` indices without replacement, each with probability proportional to its weight among those left.

    `none` fills up where there are too few. Exponential clocks that run at these rates give such a draw: the first
    `count` to ring.
    """
    clocks = torch.empty_like(weights).exponential_(generator=generator)
    drawn = ((weights + 1e-12) / clocks).topk(min(count, len(weights))).indices
    return torch.nn.functional.pad(drawn, (0, count - len(drawn)), value=none)


def balanced_draw(buffer: Buffer, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw `count` slots without replacement, a sample of every class in turn; also return which hold a sample."""
    capacity, device = buffer.capacity, buffer.size.device
    turns = turns_of_classes(buffer, generator)
    among_turn = uniform(capacity, generator, device)  # no class comes first in every turn
    order = ordered(torch.where(buffer.filled(), turns + among_turn, torch.inf)) << 32
    order += torch.arange(capacity, device=device)  # among equals the first slot, on every machine
    first = order.topk(min(count, capacity), largest=False).indices
    slots = torch.nn.functional.pad(first, (0, count - len(first)), value=capacity)
    return slots, torch.arange(count, device=device) < buffer.size


def draw_per_class(buffer: Buffer, classes: int, each: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw slots of `each` samples of every class without replacement (classes, each); also return which hold one."""
    capacity, device = buffer.capacity, buffer.size.device
    turns, labels = turns_of_classes(buffer, generator), buffer.rows["y"][:-1]
    cells = classes * each
    cell = torch.where(buffer.filled() & (turns < each), labels * each + turns, cells)  # one past the end for the rest
    slots = torch.full((cells + 1,), capacity, device=device)
    slots[cell] = torch.arange(capacity, device=device)
    slots = slots[:cells].view(classes, each)
    return slots, slots < capacity


def turns_of_classes(buffer: Buffer, generator: torch.Generator) -> Tensor:
    """Return the place of each slot among those of its class, shuffled; slots without a sample are a class as well."""
    capacity, device = buffer.capacity, buffer.size.device
    keys = uniform(capacity, generator, device)
    classes = torch.where(buffer.filled(), buffer.rows["y"][:-1], torch.iinfo(torch.int32).max)
    # With rows sorted by class, and at random within a class, the turn of a row is its place within its class.
    in_order, grouped = ((classes << 32) + ordered(keys)).sort(stable=True)
    place, of_class = torch.arange(capacity, device=device), in_order >> 32
    begins = of_class != of_class.roll(1)
    turn = place - torch.where(begins, place, 0).cummax(0).values
    return torch.empty_like(turn).scatter_(0, grouped, turn)


def uniform(count: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Return random numbers from 0 to below 1, such as `ordered` takes."""
    return torch.rand(count, generator=generator, device=device, dtype=torch.float32)


def ordered(keys: Tensor) -> Tensor:
    """Return whole numbers below 2^32 in the order of float32 keys from 0: they can be sorted in linear time."""
    return keys.view(torch.int32).long()
