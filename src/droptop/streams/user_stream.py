"""A stream of the user's own: a `Stream`, or a function of a seed that gives one, of a Python file or handed over.

    def compass(seed: int) -> droptop.Stream: ...

    droptop compare --data compass.py --out runs/compass
    droptop.compare(data=compass, out="runs/compass")

Options such as `tasks`, `batch` and `limit` are by default those that the stream was made with.
"""

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from droptop.data.image_cache import read_once
from droptop.errors import BadRequest, a_kind
from droptop.streams.stream import Stream, StreamConfig
from droptop.system import handed, user_files
from droptop.types import Source

BLOCK = 256  # images that are hashed at once


@dataclass(frozen=True)
class Maker:
    """Make streams: what the user gave, and the name that stands for it."""

    name: str
    given: Stream | Callable[[int], Stream]

    def __call__(self, seed: int) -> Stream:
        """Return the stream of a seed, as the user made it; raise BadRequest if that fails, or gives none."""
        if isinstance(self.given, Stream):
            return self.given
        given = self.given
        made = read_once((given, seed), lambda: user_files.call(given, self.name, "data", seed))
        if not isinstance(made, Stream):
            raise BadRequest(f"--data {self.name} gives {a_kind(type(made))}, not a droptop.Stream")
        return made


class First(NamedTuple):
    """Hold what is known of a stream before any seed is built."""

    name: str
    config: StreamConfig


def maker(name: str) -> Maker:
    """Return what makes the streams of a Python file, or of an object that was handed over."""
    if handed.is_object(name):
        return Maker(name, handed.find("data", name))
    return Maker(
        name, user_files.load_one(name, "data", [is_annotated, is_of_a_seed], "function of a seed that gives a Stream")
    )


def is_annotated(value: Any) -> bool:
    """Return whether a thing is a stream, or a function that says it gives one."""
    returns = getattr(value, "__annotations__", {}).get("return")
    said = returns if isinstance(returns, str) else getattr(returns, "__name__", "")
    return isinstance(value, Stream) or (inspect.isfunction(value) and said.rpartition(".")[2] == "Stream")


def is_of_a_seed(value: Any) -> bool:
    """Return whether a thing is a function that can be called with a seed alone."""
    if not inspect.isfunction(value):
        return False
    try:
        inspect.signature(value).bind(0)
    except TypeError:
        return False
    return True


def first(make: Maker) -> First:
    """Return the name and the options of a user's stream, by that of seed 0."""
    return First(make.given.name, make.given.config) if isinstance(make.given, Stream) else _first(make)


@lru_cache(maxsize=16)
def _first(make: Maker) -> First:
    stream = make(0)
    return First(stream.name, stream.config)


def build(make: Maker, config: StreamConfig, seed: int, limit: int | None = None, root: Path | None = None) -> Stream:
    """Return the user's stream of a seed, with the options of a run."""
    stream = make(seed)
    return stream.again(config, seed, stream.limit if limit is None else limit)


def summary(make: Maker) -> str:
    """Read every image of the stream of seed 0, and return how many there are of what."""
    stream = make(0)
    sha256(make)
    tests = ", ".join(f"{len(test):,} in test set {name}" for name, test in stream.given.tests.items())
    return f"{stream.name}: {len(stream.given.train):,} training images of {len(stream.spec.classes)} classes; {tests}"


def sha256(make: Maker, tests: bool = True) -> str:
    """Return the SHA-256 of the user's stream of seed 0: its spec, images, labels, and the truth about shortcuts.

    Without `tests`, the test sets are not looked at.
    """
    stream = make(0)
    digest = hashlib.sha256(repr(stream.spec).encode())
    for name, source in (("train", stream.given.train), *(stream.given.tests.items() if tests else ())):
        digest.update(f"{name} {len(source)}".encode())
        add(digest, source)
    return digest.hexdigest()


def add(digest: Any, source: Source) -> None:
    """Add the samples of a source to a hash, a block at a time."""
    for rows in torch.arange(len(source)).split(BLOCK):
        samples = source[rows]
        for part in (samples.x, source.y[rows], samples.follows, samples.shortcut):
            digest.update(b"none" if part is None else part.contiguous().view(torch.uint8).numpy())
        for name, of in sorted(samples.groups.items()):
            digest.update(f"{name} {of.names}".encode())
            digest.update(of.codes.contiguous().view(torch.uint8).numpy())
