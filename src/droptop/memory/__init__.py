"""The replay memory and the rules that fill and read it."""

from droptop.memory.buffer import Buffer, Rows
from droptop.memory.reservoir import reservoir_slots

__all__ = ["Buffer", "Rows", "reservoir_slots"]
