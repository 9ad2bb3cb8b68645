"""CIFAR's files are pickles, and a pickle is a program. This reads them without running anything.

A pickle is a list of instructions to a small stack machine, and `pickle.load` is dangerous because some of them call
what the file names. Here is the machine with the instructions that CIFAR's files have (protocol 2, as python 2 and
python 3 write it) and no others. None of them calls anything: the four names that numpy arrays are made of become
marks on the stack, and where the file wants them called, what such a call would give is worked out here. So there is
no list of forbidden things to keep up to date.

    load(path) -> {"data": uint8 array, "labels": [6, 9, ...], ...}

Memory stays in proportion to the file: a number of instructions at most, no array larger than its bytes, no string
encoded twice over. (Python's own, in C, allots its memo by the largest number in it: a file of 9 bytes can ask
for all the memory there is.)
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from droptop.errors import BadRequest

LARGEST_FILE = 1 << 29  # bytes; CIFAR-100's training file has about 155 million, written by python 3 about 222
MOST_INSTRUCTIONS = 2_000_000  # the same file has about 200,000: two labels and a name for each of 50,000 images
LONGEST_NAME = 100
MOST_DIMENSIONS = 8
NUMBERS = ("b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")  # numpy's names of them
PLAIN = (NoneType, bool, int, float, str, bytes, list)  # what a list may hold; the dictionary also holds arrays


class Refused(Exception):
    """What is wrong with a file."""


class Name(Enum):
    """What a file may name; none of it is ever called."""

    RECONSTRUCT = "_reconstruct"
    ARRAY = "ndarray"
    DTYPE = "dtype"
    ENCODE = "encode"


NAMES = {
    b"numpy.core.multiarray _reconstruct": Name.RECONSTRUCT,
    b"numpy._core.multiarray _reconstruct": Name.RECONSTRUCT,
    b"numpy ndarray": Name.ARRAY,
    b"numpy dtype": Name.DTYPE,
    b"_codecs encode": Name.ENCODE,
}


@dataclass
class Dtype:
    """A number's type as it is put together: first its kind, then its byte order."""

    kind: str
    value: np.dtype[Any] | None = None


@dataclass
class Array:
    """An array as it is put together: first a promise, then the numbers."""

    value: np.ndarray | None = None


def load(path: Path) -> dict[str, Any]:
    """The dictionary in a CIFAR file, its keys as strings, its arrays read-only; or `BadRequest` and what is wrong."""
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise BadRequest(f"{path} is no CIFAR file: it has {size:,} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}") from None
    machine = Machine(data)
    try:
        return machine.run()
    except (Refused, IndexError, KeyError, ValueError) as error:
        known: dict[type[Exception], str] = {
            IndexError: "it takes from an empty stack",
            KeyError: "it recalls what it never stored",
        }
        reason = known.get(type(error), str(error))
        raise BadRequest(f"{path} is no CIFAR file, or a damaged one: {reason}, at byte {machine.at:,}") from None


class Machine:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # what lay on the stack when each mark was set; nothing reaches under a mark
        self.memo: dict[int, Any] = {}
        self.to_encode = len(data)  # characters: more cannot be in the file without one of them encoded twice

    def run(self) -> dict[str, Any]:
        for _ in range(MOST_INSTRUCTIONS):
            code = self.take(1)
            if code == b".":
                return self.result()
            if code in GIVES:
                value = GIVES[code](self)  # which may put another stack in place
                self.stack.append(value)
            elif code in DOES:
                DOES[code](self)
            else:
                raise Refused(f"instruction {code!r} is not one that CIFAR's files have")
        raise Refused(f"more than {MOST_INSTRUCTIONS:,} instructions")

    def result(self) -> dict[str, Any]:
        """What was put together: one dictionary, and nothing after it in the file."""
        if len(self.stack) != 1 or self.below or type(self.stack[0]) is not dict:
            raise Refused("it does not hold one dictionary")
        if self.at != len(self.data):
            raise Refused("more bytes follow its end")
        record = {}
        for key, value in self.stack[0].items():
            if isinstance(value, Array):
                if value.value is None:
                    raise Refused("an array without numbers")
                value = value.value
            record[key.decode("latin1") if isinstance(key, bytes) else key] = value
        return record

    # -- The file's bytes ---------------------------------------------------------------------------------------------

    def take(self, count: int) -> bytes:
        piece = self.data[self.at : self.at + count]
        if len(piece) < count:
            raise Refused(f"it ends where {count:,} bytes should follow")
        self.at += count
        return piece

    def number(self, count: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(count), "little", signed=signed)

    def line(self) -> bytes:
        end = self.data.find(b"\n", self.at, self.at + LONGEST_NAME)
        if end < 0:
            raise Refused("a name without an end")
        return self.take(end + 1 - self.at)[:-1]

    # -- Instructions that give a value -------------------------------------------------------------------------------

    def name(self) -> Name:
        name = self.line() + b" " + self.line()
        if name not in NAMES:
            raise Refused(f"it asks for {name.decode('latin1').replace(' ', '.')!r}, which no data needs")
        return NAMES[name]

    def tuple_of(self, count: int) -> tuple[Any, ...]:
        return tuple([self.stack.pop() for _ in range(count)][::-1])

    def marked(self) -> list[Any]:
        """What was put on the stack since the last mark."""
        items, self.stack = self.stack, self.below.pop()
        return items

    def call(self) -> bytes | Array | Dtype:
        """What a call would give: bytes from latin1 text, the promise of an array, or a type of number."""
        arguments, name = self.stack.pop(), self.stack.pop()
        match name, arguments:
            case Name.ENCODE, (str(text), "latin1"):
                self.to_encode -= len(text)
                if self.to_encode < 0:
                    raise Refused("it encodes the same text again and again")
                return text.encode("latin1")
            case Name.RECONSTRUCT, (Name.ARRAY, (0,), "b" | b"b"):
                return Array()
            case Name.DTYPE, (str() | bytes() as kind, bool() | 0 | 1, bool() | 0 | 1) if text_of(kind) in NUMBERS:
                return Dtype(text_of(kind))
        raise Refused("a call that no array of numbers needs")

    # -- Instructions that change one ---------------------------------------------------------------------------------

    def protocol(self) -> None:
        if (number := self.number(1)) != 2:
            raise Refused(f"pickle protocol {number} instead of 2")

    def mark(self) -> None:
        self.below.append(self.stack)
        self.stack = []

    def extend(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise Refused("it appends to what is no list")
        admit(items, PLAIN)
        self.stack[-1].extend(items)

    def update(self, items: list[Any]) -> None:
        keys, values = items[::2], items[1::2]
        if type(self.stack[-1]) is not dict or len(keys) != len(values):
            raise Refused("it sets an item of what is no dictionary")
        if not all(isinstance(key, str | bytes) for key in keys):
            raise Refused("a key that is no text")
        admit(values, (*PLAIN, Array))
        self.stack[-1].update(zip(keys, values))

    def build(self) -> None:
        """Completes a type of number or an array with the state that follows it."""
        state = self.stack.pop()
        match self.stack[-1], state:
            case Dtype() as dtype, (3, "|" | "<" | ">" | b"|" | b"<" | b">" as order, None, None, None, -1, -1, 0):
                dtype.value = np.dtype(text_of(order) + dtype.kind)
            case Array() as array, (
                1,
                tuple() as shape,
                Dtype(value=np.dtype() as numpy_dtype),
                bool() | 0 | 1 as fortran,
                bytes() as numbers,
            ):
                array.value = numbers_of(shape, numpy_dtype, bool(fortran), numbers)
            case _:
                raise Refused("a state that no array of numbers has")


def admit(values: list[Any], kinds: tuple[type, ...]) -> None:
    """Keeps what is only good for making arrays, and whatever CIFAR's files do not have, out of what they hold."""
    if odd := {type(value) for value in values}.difference(kinds):
        raise Refused(f"it holds a value of type {odd.pop().__name__}, which CIFAR's files do not")


def text_of(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("latin1")


def numbers_of(shape: tuple[Any, ...], dtype: np.dtype[Any], fortran: bool, numbers: bytes) -> np.ndarray:
    """The array that bytes stand for, without a copy of them."""
    if len(shape) > MOST_DIMENSIONS or not all(type(side) is int and 0 < side < LARGEST_FILE for side in shape):
        raise Refused("a shape that no array has")
    if math.prod(shape) * dtype.itemsize != len(numbers):
        raise Refused(f"an array of {' x '.join(map(str, shape))} with {len(numbers):,} bytes")
    return np.frombuffer(numbers, dtype).reshape(shape, order="F" if fortran else "C")


GIVES: dict[bytes, Callable[[Machine], Any]] = {
    b"N": lambda m: None,
    b"\x88": lambda m: True,
    b"\x89": lambda m: False,
    b"K": lambda m: m.number(1),
    b"M": lambda m: m.number(2),
    b"J": lambda m: m.number(4, signed=True),
    b"\x8a": lambda m: m.number(m.number(1), signed=True),
    b"G": lambda m: struct.unpack(">d", m.take(8))[0],
    b"U": lambda m: m.take(m.number(1)),  # python 2's text, which is bytes
    b"T": lambda m: m.take(m.number(4)),
    b"X": lambda m: m.take(m.number(4)).decode(),
    b"]": lambda m: [],
    b"}": lambda m: {},
    b")": lambda m: (),
    b"\x85": lambda m: m.tuple_of(1),
    b"\x86": lambda m: m.tuple_of(2),
    b"\x87": lambda m: m.tuple_of(3),
    b"t": lambda m: tuple(m.marked()),
    b"h": lambda m: m.memo[m.number(1)],
    b"j": lambda m: m.memo[m.number(4)],
    b"c": Machine.name,
    b"R": Machine.call,
}
DOES: dict[bytes, Callable[[Machine], None]] = {
    b"\x80": Machine.protocol,
    b"(": Machine.mark,
    b"q": lambda m: m.memo.__setitem__(m.number(1), m.stack[-1]),
    b"r": lambda m: m.memo.__setitem__(m.number(4), m.stack[-1]),
    b"a": lambda m: m.extend([m.stack.pop()]),
    b"s": lambda m: m.update(list(m.tuple_of(2))),
    b"e": lambda m: m.extend(m.marked()),
    b"u": lambda m: m.update(m.marked()),
    b"b": Machine.build,
}
