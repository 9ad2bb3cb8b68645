"""The replay memory: tensors of fixed capacity, written and read by index tensors alone.

Slot `capacity` is one row past the end, where rejected samples go: a rule says "not this one" by choosing that slot,
so that no step ever asks the device how many samples it kept.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from droptop.types import Rows


class Buffer:
    def __init__(self, capacity: int, columns: Mapping[str, Tensor], device: torch.device | str = "cpu") -> None:
        """`columns` gives an example row of each: its shape and dtype are kept."""
        self.capacity = capacity
        self.rows: Rows = {
            name: torch.zeros((capacity + 1, *row.shape), dtype=row.dtype, device=device)
            for name, row in columns.items()
        }
        self.seen = torch.zeros((), dtype=torch.int64, device=device)  # samples offered so far
        self.size = torch.zeros((), dtype=torch.int64, device=device)  # rows that hold one, always the first ones

    def filled(self) -> Tensor:
        """Which of the `capacity` rows hold a sample."""
        return torch.arange(self.capacity, device=self.size.device) < self.size

    def write(self, slots: Tensor, rows: Rows) -> None:
        """Row i of `rows` goes to `slots[i]`; of several for one slot the last one stays."""
        later = torch.ones(len(slots), len(slots), dtype=torch.bool, device=slots.device).triu(1)
        overwritten = ((slots[:, None] == slots) & later).any(1)
        slots = torch.where(overwritten, self.capacity, slots)
        for name, column in self.rows.items():
            column[slots] = rows[name]
        used = torch.where(slots < self.capacity, slots + 1, 0).amax()
        self.size.copy_(torch.maximum(self.size, used))

    def read(self, slots: Tensor) -> Rows:
        return {name: column[slots] for name, column in self.rows.items()}

    def draw(self, count: int, generator: torch.Generator, but: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Slots of `count` samples without replacement, none of them in `but`; and which of them are really there."""
        keys = torch.rand(self.capacity, generator=generator, device=self.size.device)
        wanted = self.filled()
        if but is not None:
            wanted = F.pad(wanted, (0, 1)).index_fill(0, but, False)[:-1]
        best = torch.where(wanted, keys, -1.0).topk(min(count, self.capacity))
        missing = count - len(best.indices)
        return F.pad(best.indices, (0, missing), value=self.capacity), F.pad(best.values >= 0, (0, missing))

    def sample(self, count: int, generator: torch.Generator, fill: Rows) -> Rows:
        """`count` samples without replacement; where the memory holds fewer, rows of `fill` take their place, and
        the column "there" says so (columns that `fill` lacks are zero then)."""
        slots, there = self.draw(count, generator)
        spare = torch.arange(count, device=slots.device) % len(fill["y"])
        rows = {"there": there}
        for name, drawn in self.read(slots).items():
            otherwise = fill[name][spare] if name in fill else torch.zeros_like(drawn)
            rows[name] = torch.where(there.view(-1, *[1] * (drawn.dim() - 1)), drawn, otherwise)
        return rows

    def state_dict(self) -> dict[str, Tensor]:
        """Views of what must survive; the row for rejected samples is not part of it."""
        return {"seen": self.seen, "size": self.size} | {n: c[: self.capacity] for n, c in self.rows.items()}
