"""CIFAR's files are pickles, and a pickle is a program: this reads them without running what they name.

    load(path) -> {"data": uint8 array, "labels": [6, 9, ...], ...}

A pickle is a list of instructions to a small stack machine. Here is Python's own machine (the one written in Python),
cut down to the instructions of CIFAR's files (protocol 2, as python 2 and python 3 write it). The names that a numpy
array needs become marks on the stack, and what calling them would give is worked out here: nothing that a file names is
ever called. Time and memory stay in proportion to the file.

Python's fast unpickler with a list of allowed names would be ten lines, but takes 4 GiB for a file of 9 bytes, and
does not end on one of 507 (2^100 steps). Checksums would refuse CIFAR with other labels, or written anew by python 3.
"""

import math
import pickle
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from droptop.errors import BadRequest

LARGEST_FILE = 1 << 28  # bytes; CIFAR-100's training file has about 155 million, written by python 3 about 222
MOST_READS = 2_000_000  # the same file takes about 450,000: two labels and a name for each of 50,000 images
LONGEST_TEXT = 1 << 20  # bytes of a text that may have any letters; a longer one stands for an array's bytes
INSTRUCTIONS = b"\x80(.N\x88\x89KMJ\x8aGUTX]})\x85\x86\x87tqrhjaesucRb"
NUMBERS = ("b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")  # numpy's names of them


class Refused(Exception):
    """A file holds what no CIFAR file does."""


class Name(Enum):
    """List what a file may name."""

    RECONSTRUCT = "_reconstruct"
    ARRAY = "ndarray"
    DTYPE = "dtype"
    ENCODE = "encode"


NAMES = {
    "numpy.core.multiarray._reconstruct": Name.RECONSTRUCT,
    "numpy._core.multiarray._reconstruct": Name.RECONSTRUCT,
    "numpy.ndarray": Name.ARRAY,
    "numpy.dtype": Name.DTYPE,
    "_codecs.encode": Name.ENCODE,
}


def load(path: Path) -> dict[str, Any]:
    """Return the dictionary in a CIFAR file, its keys as strings, its arrays read-only; refuse any other file."""
    try:
        if (size := path.stat().st_size) > LARGEST_FILE:
            raise BadRequest(f"{path} is no CIFAR file: it has {size:,} bytes")
        file = Bytes(path.read_bytes())
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}") from None
    try:
        machine = Machine(file)
        record = machine.load()
        if type(record) is not dict or machine.stack or machine.metastack or file.at != len(file.data):
            raise Refused("it does not hold one dictionary and nothing else")
    except Exception as error:  # a damaged file may make the machine fail in any way
        unknown = isinstance(error, KeyError)  # no such instruction
        reason = f"instruction {bytes(error.args)!r} is not one that CIFAR's files have" if unknown else error
        raise BadRequest(f"{path} is no CIFAR file, or a damaged one: {reason}, at byte {file.at:,}") from None
    return {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in record.items()}


class Bytes:
    """A file in memory, which is read a limited number of times and never beyond its end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.reads = data, 0, 0

    def read(self, count: int) -> bytes:
        """Return the next bytes; refuse a file that ends before, or that takes more reads than CIFAR's."""
        self.reads += 1
        if self.reads > MOST_READS:
            raise Refused(f"it takes more than {MOST_READS:,} reads")
        piece = self.data[self.at : self.at + count]
        if len(piece) < count:
            raise Refused(f"it ends where {count:,} bytes should follow")
        self.at += count
        return piece

    def readline(self) -> bytes:
        """Return the next line, which holds a module or a name in it."""
        end = self.data.find(b"\n", self.at, self.at + 100)
        if end < 0:
            raise Refused("a name without an end")
        return self.read(end + 1 - self.at)


class Machine(pickle._Unpickler):
    """Python's stack machine with the instructions that CIFAR's files have, and no names but those of an array."""

    read: Callable[[int], bytes]
    stack: list[Any]
    metastack: list[list[Any]]  # what lies below each open mark
    pop_mark: Callable[[], list[Any]]
    append: Callable[[Any], None]

    def __init__(self, file: Bytes) -> None:
        super().__init__(file, encoding="bytes")
        self.allowance = 2 * len(file.data)  # bytes: each may be encoded once, and once be part of an array

    def spend(self, count: int) -> None:
        """Refuse a small file that asks for much memory with one piece of it, again and again."""
        self.allowance -= count
        if self.allowance < 0:
            raise Refused("it uses the same bytes again and again")

    def load_proto(self) -> None:
        if (number := self.read(1)[0]) != 2:
            raise Refused(f"pickle protocol {number} instead of 2")

    def load_binunicode(self) -> None:
        """Put a text; refuse a long one with letters beyond latin1, which takes four bytes for each of them."""
        length = int.from_bytes(self.read(4), "little")
        text = self.read(length)
        if length > LONGEST_TEXT and np.frombuffer(text, np.uint8).max() > 0xC3:
            raise Refused("a long text that no array's bytes are written as")
        self.append(str(text, "utf-8", "surrogatepass"))

    def find_class(self, module: str, name: str) -> Name:
        if (known := NAMES.get(f"{module}.{name}")) is None:
            raise Refused(f"it asks for {f'{module}.{name}'!r}, which no data needs")
        return known

    def load_reduce(self) -> None:
        """Put what a call would return: bytes from latin1 text, an array without numbers yet, or a type of number."""
        arguments, name = self.stack.pop(), self.stack.pop()
        match name, arguments:
            case Name.ENCODE, (str(text), "latin1"):
                self.spend(len(text))
                self.stack.append(text.encode("latin1"))
            case Name.RECONSTRUCT, (Name.ARRAY, (0,), "b" | b"b"):
                self.stack.append(np.empty(0, np.int8))
            case Name.DTYPE, (str() | bytes() as kind, bool() | 0 | 1, bool() | 0 | 1) if as_text(kind) in NUMBERS:
                self.stack.append(np.dtype("<" + as_text(kind)))
            case _:
                raise Refused("a call that no array of numbers needs")

    def load_build(self) -> None:
        """Fill an array with the numbers that follow it; a type of number is complete without its byte order."""
        state = self.stack.pop()
        match self.stack[-1], state:
            case np.dtype(), (3, "|" | "<" | b"|" | b"<", None, None, None, -1, -1, 0):
                pass
            case np.ndarray() as array, (1, tuple(shape), np.dtype() as dtype, bool() | 0 | 1, bytes(data)):
                if len(shape) > 8 or not all(type(side) is int and 0 < side < LARGEST_FILE for side in shape):
                    raise Refused("a shape that no array has")
                if math.prod(shape) * dtype.itemsize != len(data):
                    raise Refused(f"an array of {' x '.join(map(str, shape))} with {len(data):,} bytes")
                self.spend(len(data))
                array.__setstate__(state)
                array.flags.writeable = False  # it shares the bytes' memory
            case _:
                raise Refused("a state that no array of numbers has")

    def load_setitem(self) -> None:
        self.put([self.stack.pop(-2), self.stack.pop()])

    def load_setitems(self) -> None:
        self.put(self.pop_mark())

    def put(self, items: list[Any]) -> None:
        """Put keys and values in a dictionary; refuse keys other than text: nested tuples take forever to hash."""
        if not all(isinstance(key, str | bytes) for key in items[::2]):
            raise Refused("a key that is no text")
        self.stack[-1].update(zip(items[::2], items[1::2], strict=True))


def as_text(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("latin1")


Machine.dispatch = {code: getattr(Machine, pickle._Unpickler.dispatch[code].__name__) for code in INSTRUCTIONS}
