"""The replay memory and the rules that fill and read it."""

from droptop.memory.buffer import Buffer, Rows, split
from droptop.memory.reservoir import reservoir_slots
from droptop.memory.selection import balanced_draw, first_free_slots, weighted_draw

__all__ = ["Buffer", "Rows", "balanced_draw", "first_free_slots", "reservoir_slots", "split", "weighted_draw"]
