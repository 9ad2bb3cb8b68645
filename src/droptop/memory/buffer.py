"""The replay memory: tensors of fixed capacity, written and read by index tensors alone.

Slot `capacity` is one row past the end, for rejected samples: a rule rejects a sample by choosing that slot, so that no
step has to ask the device how many samples were kept.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from droptop.errors import BadRequest
from droptop.system.memory import gib, room_on
from droptop.types import Rows


def check_room(capacity: int, columns: Mapping[str, Tensor], device: torch.device | str) -> None:
    """Raise BadRequest if a device has not the memory for so many rows of columns, given by an example row each."""
    taken = (capacity + 1) * sum(row.numel() * row.element_size() for row in columns.values())
    there = room_on(torch.device(device))
    if taken > there:
        raise BadRequest(
            f"--memory takes as many samples as the machine can hold: {capacity:,} take {gib(taken)}, and "
            f"{'the GPU' if torch.device(device).type == 'cuda' else 'this machine'} has {gib(there)}"
        )


def comes_again(slots: Tensor) -> Tensor:
    """Return whether each slot is named once more later on."""
    in_order, place = slots.sort(stable=True)
    return torch.zeros_like(slots, dtype=torch.bool).scatter_(0, place[:-1], in_order[:-1] == in_order[1:])


class Buffer:
    """Hold samples in columns of fixed capacity."""

    def __init__(self, capacity: int, columns: Mapping[str, Tensor], device: torch.device | str = "cpu") -> None:
        """Allocate the memory; `columns` has an example row per column, for shape and dtype."""
        self.capacity = capacity
        check_room(capacity, columns, device)
        self.rows: Rows = {
            name: torch.zeros((capacity + 1, *row.shape), dtype=row.dtype, device=device)
            for name, row in columns.items()
        }
        self.seen = torch.zeros((), dtype=torch.int64, device=device)  # samples offered so far, by reservoir sampling
        self.size = torch.zeros((), dtype=torch.int64, device=device)  # rows that hold a sample, always the first ones

    def __repr__(self) -> str:
        return f"Buffer({int(self.size):,} of {self.capacity:,} samples; {', '.join(self.rows)})"

    def filled(self) -> Tensor:
        """Return which of the `capacity` rows hold a sample."""
        return torch.arange(self.capacity, device=self.size.device) < self.size

    def write(self, slots: Tensor, rows: Rows) -> None:
        """Write row i of `rows` to `slots[i]`; of several rows for one slot, the last stays."""
        slots = torch.where(comes_again(slots), self.capacity, slots)
        for name, column in self.rows.items():
            column[slots] = rows[name]
        used = torch.where(slots < self.capacity, slots + 1, 0).amax()
        self.size.copy_(torch.maximum(self.size, used))

    def read(self, slots: Tensor) -> Rows:
        """Return the rows in these slots."""
        return {name: column[slots] for name, column in self.rows.items()}

    def whole(self) -> Rows:
        """Return views of all rows, those that hold no sample too: nothing is copied."""
        return {name: column[: self.capacity] for name, column in self.rows.items()}

    def draw(self, count: int, generator: torch.Generator, but: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Draw slots of `count` samples without replacement, none of them in `but`.

        Also return which of these slots hold a sample: false where the memory has too few.
        """
        keys = torch.rand(self.capacity, generator=generator, device=self.size.device)
        allowed = self.filled()
        if but is not None:
            allowed = F.pad(allowed, (0, 1)).index_fill(0, but, False)[:-1]
        best = torch.where(allowed, keys, -1.0).topk(min(count, self.capacity))
        missing = count - len(best.indices)
        return F.pad(best.indices, (0, missing), value=self.capacity), F.pad(best.values >= 0, (0, missing))

    def sample(self, count: int, generator: torch.Generator, fill: Rows) -> Rows:
        """Draw `count` samples without replacement; where the memory holds fewer, rows of `fill` take their place.

        The column "there" is true for samples of the memory. Columns that `fill` lacks are zero in its rows.
        """
        slots, filled = self.draw(count, generator)
        spare = torch.arange(count, device=slots.device) % len(fill["y"])
        rows = {"there": filled}
        for name, drawn in self.read(slots).items():
            substitute = fill[name][spare] if name in fill else torch.zeros_like(drawn)
            rows[name] = torch.where(filled.view(-1, *[1] * (drawn.dim() - 1)), drawn, substitute)
        return rows

    def state_dict(self) -> dict[str, Tensor]:
        """Return views of the counts and columns, without the row for rejected samples."""
        return {"seen": self.seen, "size": self.size} | self.whole()
