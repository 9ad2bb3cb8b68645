"""MNIST's idx files: two zero bytes, the type of number, how many dimensions, each of them, then the numbers.

Who reads one says what shape it must have, so that a damaged or hostile header can ask for nothing. A file whose name
ends in .gz is decompressed, as far as that shape goes.
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
    """The bytes in an idx file, of just this shape, read-only; or `BadRequest` with what is wrong."""
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
    found = struct.unpack(f">{len(shape)}I", data[4:header])
    if found != shape:
        raise BadRequest(f"{path} holds {by(found)} numbers instead of {by(shape)}")
    if len(data) != header + math.prod(shape):
        problem = "is cut off" if len(data) < header + math.prod(shape) else "has more bytes"
        raise BadRequest(f"{path} {problem}: its header says {by(shape)} numbers")
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


def by(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{side:,}" for side in shape)
