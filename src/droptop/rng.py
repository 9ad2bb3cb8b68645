"""Randomness has an owner: one generator per purpose, seeded by (seed, purpose).

Arms that differ in debiasing then draw the same weights, stream, memory and augmentations, although debiasers draw
too. Nothing here or elsewhere moves torch's global generator.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch

PURPOSES = ("augment", "memory", "debias")  # generators that a learner owns; "init" and "order" keep no state


def derive(seed: int, *purpose: str | int) -> int:
    """Return a 63-bit seed that depends on the seed and on every part of the purpose."""
    name = "/".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little") >> 1


def generator(seed: int, *purpose: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """Return a generator for one purpose, at the start of its sequence."""
    return torch.Generator(device).manual_seed(derive(seed, *purpose))


@contextmanager
def seeded(seed: int, *purpose: str | int) -> Iterator[None]:
    """Seed torch's global generator while code runs that knows no other, such as `nn.Module` constructors."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derive(seed, *purpose))
        yield
