"""Randomness has an owner: one generator a purpose, seeded by (seed, purpose).

The two arms of a comparison then draw the same weights, stream, memory and augmentations although only one of them
also draws for its masks. Nothing here or elsewhere moves torch's global generator.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch

PURPOSES = ("augment", "memory", "debias")  # the ones a learner owns; "init" and "order" leave no state behind


def derive(seed: int, *purpose: str | int) -> int:
    """A 63-bit seed that depends on every part of its name."""
    name = "/".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little") >> 1


def generator(seed: int, *purpose: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    return torch.Generator(device).manual_seed(derive(seed, *purpose))


@contextmanager
def seeded(seed: int, *purpose: str | int) -> Iterator[None]:
    """For code that only knows the global generator, such as `nn.Module` constructors: lends it a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derive(seed, *purpose))
        yield
