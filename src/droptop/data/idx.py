"""MNIST's idx files: two zero bytes, the type of number, how many dimensions, each of them, then the numbers.

The caller says which shape a file must have, so that a damaged or hostile header cannot ask for memory. A file whose
name ends in .gz is decompressed, up to the size of that shape.
"""

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from droptop.errors import BadRequest

UNSIGNED_BYTE = 0x08


def read_idx(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Return the numbers of an idx file, read-only; refuse a damaged file, and one of another shape."""
    header = 4 + 4 * len(shape)
    try:
        with cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(header + math.prod(shape) + 1)  # a byte more than there should be
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadRequest(f"{path} is damaged: {error}") from None
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}") from None
    start = bytes([0, 0, UNSIGNED_BYTE, len(shape)])
    if data[:4] != start:
        raise BadRequest(
            f"{path} is no idx file of bytes in {len(shape)} dimensions: it starts with "
            f"{data[:4].hex(' ') or 'nothing'} instead of {start.hex(' ')}"
        )
    if len(data) < header:
        raise BadRequest(f"{path} is cut off in its header")
    actual = struct.unpack(f">{len(shape)}I", data[4:header])
    if actual != shape:
        raise BadRequest(f"{path} holds {by(actual)} numbers instead of {by(shape)}")
    if len(data) != header + math.prod(shape):
        problem = "is cut off" if len(data) < header + math.prod(shape) else "has more bytes"
        raise BadRequest(f"{path} {problem}: its header says {by(shape)} numbers")
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


def by(shape: tuple[int, ...]) -> str:
    """Return a shape in words, such as 10,000 x 28 x 28."""
    return " x ".join(f"{side:,}" for side in shape)
