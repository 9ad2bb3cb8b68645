"""The replay memory and the rules that fill and read it."""

from droptop.memory.buffer import Buffer
from droptop.memory.reservoir import reservoir_slots
from droptop.memory.selection import balanced_draw, draw_per_class, first_free_slots, weighted_draw
from droptop.types import Rows

__all__ = ["Buffer", "Rows", "balanced_draw", "draw_per_class", "first_free_slots", "reservoir_slots", "weighted_draw"]
