"""Reservoir sampling (Vitter, 1985): after n samples each of them is in the memory with probability capacity / n."""

import torch
from torch import Tensor

from droptop.memory.buffer import Buffer
from droptop.system.devices import widest


def reservoir_slots(buffer: Buffer, count: int, accept: Tensor, generator: torch.Generator) -> Tensor:
    """Choose a slot for each of the next `count` samples; `capacity` rejects one, and all where `accept` is false."""
    position = buffer.seen + torch.arange(count, device=buffer.seen.device)  # samples before this one
    device = buffer.seen.device
    uniform = torch.rand(count, generator=generator, device=device, dtype=widest(device))
    chosen = (uniform * (position + 1)).long()
    slots = torch.where(position < buffer.capacity, position, chosen).clamp(max=buffer.capacity)
    buffer.seen += count * accept
    return torch.where(accept, slots, buffer.capacity)
