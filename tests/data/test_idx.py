import gzip
import random

import numpy as np
import pytest

from droptop.data.idx import read_idx
from droptop.errors import BadRequest

from formats import idx_bytes

SHAPE = (5, 4, 3)
NUMBERS = np.arange(60, dtype=np.uint8).reshape(SHAPE)
GOOD = idx_bytes(NUMBERS)
PACKED = gzip.compress(GOOD, mtime=0)


@pytest.mark.parametrize("name", ["images-idx3-ubyte", "images-idx3-ubyte.gz"])
def test_files_are_read_back(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(GOOD) if name.endswith("gz") else GOOD)
    numbers = read_idx(tmp_path / name, SHAPE)
    assert numbers.dtype == np.uint8
    assert np.array_equal(numbers, NUMBERS)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "starts with nothing"),
        (b"\0\0\x08\x01" + GOOD[4:], "starts with 00 00 08 01 instead of 00 00 08 03"),
        (b"\0\0\x0d\x03" + GOOD[4:], "starts with 00 00 0d 03"),  # floats
        (b"\x1f\x8b\x08\x00" + GOOD[4:], "starts with 1f 8b"),  # compressed, by another name
        (GOOD[:15], "header"),
        (idx_bytes(NUMBERS[:4]), "4 x 4 x 3 numbers instead of 5 x 4 x 3"),
        (idx_bytes(NUMBERS.reshape(5, 3, 4)), "5 x 3 x 4 numbers"),
        (GOOD[:4] + b"\xff" * 12 + GOOD[16:], "4,294,967,295 x"),
        (GOOD[:-1], "cut off"),
        (GOOD + b"\0", "more bytes"),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_damaged_files_are_refused(tmp_path, data, reason, compressed):
    path = tmp_path / ("file.gz" if compressed else "file")
    path.write_bytes(gzip.compress(data) if compressed else data)
    with pytest.raises(BadRequest, match=reason) as error:
        read_idx(path, SHAPE)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x1f", id="one-byte"),
        pytest.param(GOOD, id="not-packed"),
        pytest.param(PACKED[:-1], id="cut-by-one"),
        pytest.param(PACKED[:30], id="cut-short"),
        pytest.param(PACKED[:-8] + bytes(8), id="wrong-checksum"),
        pytest.param(PACKED + b"more", id="more-behind"),
    ],
)
def test_damaged_compression_is_refused(tmp_path, data):
    (tmp_path / "file.gz").write_bytes(data)
    with pytest.raises(BadRequest, match=r"file.gz"):
        read_idx(tmp_path / "file.gz", SHAPE)


def test_a_bomb_is_refused_without_opening_it(tmp_path):
    """A gigabyte of zeros in a megabyte: no more is decompressed than the shape asks for."""
    member = gzip.compress(bytes(1 << 20))
    (tmp_path / "file.gz").write_bytes(PACKED + member * 1024)
    with pytest.raises(BadRequest, match="more bytes"):
        read_idx(tmp_path / "file.gz", SHAPE)


def test_unreadable_files_are_refused(tmp_path):
    for path in (tmp_path / "absent", tmp_path / "absent.gz", tmp_path):
        with pytest.raises(BadRequest, match=str(path)):
            read_idx(path, SHAPE)


@pytest.mark.parametrize("compressed", [False, True])
def test_mutated_files_are_read_or_refused(tmp_path, compressed):
    """A refusal, or the numbers that are in the file; nothing else is raised."""
    good = gzip.compress(GOOD, mtime=0) if compressed else GOOD
    path = tmp_path / ("file.gz" if compressed else "file")
    chance, accepted, refusals = random.Random(1), 0, []
    for _ in range(1000):
        start, length = chance.randrange(len(good)), chance.choice([0, 1, 1, 1, 1, 4])
        data = good[:start] + chance.randbytes(chance.choice([length, length, 0, 1, 3])) + good[start + length :]
        path.write_bytes(data)
        try:
            numbers = read_idx(path, SHAPE)
        except BadRequest as error:
            refusals.append(str(error))
        else:
            accepted += 1
            plain = gzip.decompress(data) if compressed else data
            assert plain[:16] == GOOD[:16]
            assert numbers.tobytes() == plain[16:]
    assert 50 < accepted < 700
    assert not any("\n" in refusal for refusal in refusals)
