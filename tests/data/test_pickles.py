import os
import pickle
import random
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from droptop.data import pickles
from droptop.data.pickles import load
from droptop.errors import BadRequest

from formats import python2_pickle, python3_pickle

RECORD = {
    "batch_label": "training batch 1 of 5",
    "labels": [6, 9, 300, 70000, -1],
    "data": np.arange(400, dtype=np.uint8).reshape(2, 200),
    "filenames": ["a.png", "b.png"],
}


def read(tmp_path, data):
    (tmp_path / "batch").write_bytes(data)
    return load(tmp_path / "batch")


def reference(data):
    """Python's own unpickler; the one written in Python, whose memo is no list."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy has its opinion on python 2's dtypes
        record = pickle._loads(data, encoding="bytes")
    return {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in record.items()}


def same(a, b):
    if isinstance(a, np.ndarray):
        return type(b) is np.ndarray and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("dump", [python2_pickle, python3_pickle, lambda record: pickle.dumps(record, 2)])
def test_reads_what_python_reads(tmp_path, dump):
    data = dump(RECORD)
    record = read(tmp_path, data)
    assert same(record, reference(data))
    assert list(record) == list(RECORD)
    assert same(record["data"], RECORD["data"])
    assert record["labels"] == RECORD["labels"]


@pytest.mark.parametrize("dtype", ["u1", "i1", "?", "<i2", "<u4", "<i8", "<f4", "<f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_every_type_are_read(tmp_path, dtype, order):
    array = np.array(np.arange(6).reshape(2, 3), dtype=dtype, order=order)
    assert same(read(tmp_path, python3_pickle({"data": array}))["data"], array)


def test_lists_of_many_values_are_read(tmp_path):
    record = {
        "values": [0, 255, 65535, -5, 1 << 40, -(1 << 70), 0.1, None, True, False, "ü", b"\x80\xff", [[]]],
        "long": [str(n) for n in range(3000)],
    }
    assert same(read(tmp_path, pickle.dumps(record, 2)), record)


def test_shared_values_stay_shared(tmp_path):
    names = ["a"]
    record = read(tmp_path, pickle.dumps({"x": names, "y": names}, 2))
    assert record["x"] is record["y"]


# -- What is refused --------------------------------------------------------------------------------------------------


class Touch:
    """Writes a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def value(code):
    """A file whose dictionary holds what these instructions give."""
    return b"\x80\x02}U\x01a" + code + b"s."


RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
U1 = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"


def array(shape, dtype=U1, numbers=b"U\x01x", fortran=b"\x89"):
    return RECONSTRUCT + b"(K\x01" + shape + dtype + fortran + numbers + b"tb"


HOSTILE = {
    "a name": (value(b"cos\nsystem\nU\x02ls\x85R"), "'os.system'"),
    "a name of python 2": (value(b"c__builtin__\neval\nU\x011\x85R"), "eval"),
    "a name with a path": (value(b"cnumpy\ncore.os.system\n"), "core.os.system"),
    "a name of numpy": (value(b"cnumpy\nload\nU\x01a\x85R"), "'numpy.load'"),
    "a name without end": (value(b"c" + b"x" * 300), "without an end"),
    "a name with a bell": (value(b"cos\n\x07\n"), r"\\x07"),
    "a name from the stack": (value(b"U\x02osU\x06system\x93"), r"\\x93"),
    "an instance": (value(b"(ios\nsystem\n"), "instruction b'i'"),
    "an object": (value(b"(cnumpy\nndarray\nK\x01o"), "instruction b'o'"),
    "a new object": (value(b"cnumpy\nndarray\nK\x01\x85\x81"), r"\\x81"),
    "the extension registry": (value(b"\x82\x01"), r"\\x82"),
    "a persistent id": (value(b"P1\n"), "instruction b'P'"),
    "a persistent id from the stack": (value(b"K\x01Q"), "instruction b'Q'"),
    "a buffer from outside": (value(b"\x97"), r"\\x97"),
    "attributes of a dictionary": (value(b"}}U\x01aK\x01sb"), "a state"),
    "attributes of a name": (value(b"cnumpy\nndarray\n}U\x01aK\x01sb"), "a state"),
    "attributes of an array": (value(RECONSTRUCT + b"}U\x01aK\x01sb"), "a state"),
    "a call of an array": (value(b"cnumpy\nndarray\nK\x09\x85\x85R"), "a call"),
    "a call of a number": (value(b"K\x01)R"), "a call"),
    "a call without arguments": (value(b"c_codecs\nencode\n)R"), "a call"),
    "another codec": (value(b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R"), "a call"),
    "another codec's error handler": (
        value(b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x06\x00\x00\x00latin1X\x06\x00\x00\x00ignore\x87R"),
        "a call",
    ),
    "bytes to encode": (value(b"c_codecs\nencode\nU\x01aX\x06\x00\x00\x00latin1\x86R"), "a call"),
    "text beyond latin1": (
        value(b"c_codecs\nencode\nX\x02\x00\x00\x00\xc4\x80X\x06\x00\x00\x00latin1\x86R"),
        "latin-1",
    ),
    "text that is no text": (value(b"X\x01\x00\x00\x00\xff"), "utf-8"),
    "another class of array": (
        value(b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\ndtype\nK\x00\x85U\x01b\x87R"),
        "a call",
    ),
    "an array of that size at once": (
        value(b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nJ\xff\xff\xff\x7f\x85U\x01b\x87R"),
        "a call",
    ),
    "a dtype of objects": (value(b"cnumpy\ndtype\nU\x02O8K\x00K\x01\x87R"), "a call"),
    "a dtype of text": (value(b"cnumpy\ndtype\nU\x0aS999999999K\x00K\x01\x87R"), "a call"),
    "a dtype of fields": (value(b"cnumpy\ndtype\n]K\x00K\x01\x87R"), "a call"),
    "a dtype's metadata": (value(U1[:-20] + b"NNN}J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"), "a state"),
    "a byte order": (value(U1.replace(b"|", b"!")), "a state"),
    "big endian": (value(U1.replace(b"|", b">")), "a state"),
    "an array of objects": (value(array(b"K\x01\x85", numbers=b"]N\x61")), "a state"),
    "a huge shape": (value(array(b"J\xff\xff\xff\x0fJ\xff\xff\xff\x0f\x86")), "268435455 x 268435455 with 1 bytes"),
    "a shape beyond numbers": (value(array(b"\x8a\xff" + b"\x7f" * 255 + b"\x85")), "a shape"),
    "a negative shape": (value(array(b"J\xff\xff\xff\xff\x85")), "a shape"),
    "an empty shape": (value(array(b"K\x00\x8a\x08" + b"\x7f" * 8 + b"\x86", numbers=b"U\x00")), "a shape"),
    "many dimensions": (value(array(b"(" + b"K\x01" * 9 + b"t")), "a shape"),
    "a shape of lists": (value(array(b"]\x85")), "a shape"),
    "too few numbers": (value(array(b"K\x02\x85")), "2 with 1 bytes"),
    "a key that is a tuple": (b"\x80\x02})K\x01s.", "a key"),  # whose hash may take longer than the universe
    "an item of a list": (value(b"]U\x01aK\x01s"), "no attribute"),
    "an odd number of items": (b"\x80\x02}(U\x01au.", "shorter"),
    "an append to a tuple": (value(b")K\x01a"), "no attribute"),
    "an empty stack": (b"\x80\x020.", "instruction b'0'"),
    "a stack that is too short": (b"\x80\x02K\x01\x86.", "out of range|empty list"),
    "no mark": (b"\x80\x02K\x01t.", "out of range|empty list"),
    "a reach under a mark": (b"\x80\x02}(b.", "empty list"),
    "an open mark": (b"\x80\x02(}.", "one dictionary"),
    "a list": (b"\x80\x02].", "one dictionary"),
    "two dictionaries": (b"\x80\x02}}.", "one dictionary"),
    "an unknown memo": (value(b"h\x07"), "not found"),
    "more bytes": (value(b"N") + b"\0", "nothing else"),
    "protocol 4": (pickle.dumps({}, 4), "protocol 4"),
    "protocol 0": (pickle.dumps({"a": 1}, 0), "instruction"),
    "nothing": (b"", "ends"),
    "text that is longer than the file": (value(b"T\xff\xff\xff\x7f"), "ends"),
    "an HTML page": (b"<!DOCTYPE html>", "instruction"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_other_instructions_are_refused(tmp_path, name):
    data, reason = HOSTILE[name]
    with pytest.raises(BadRequest, match=reason) as error:
        read(tmp_path, data)
    assert str(tmp_path / "batch") in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300 + len(str(tmp_path))


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_is_called(tmp_path, protocol):
    data = pickle.dumps({"data": Touch(tmp_path / "touched")}, protocol)
    with pytest.raises(BadRequest):
        read(tmp_path, data)
    assert not (tmp_path / "touched").exists()
    pickle.loads(data)
    assert (tmp_path / "touched").exists()  # it would have


@pytest.mark.parametrize("dump", [python2_pickle, python3_pickle])
def test_every_truncation_is_refused(tmp_path, dump):
    data = dump(RECORD)
    for length in range(len(data)):
        with pytest.raises(BadRequest, match="batch"):
            read(tmp_path, data[:length])


def test_no_more_reads_than_a_file_needs(tmp_path, monkeypatch):
    monkeypatch.setattr(pickles, "MOST_READS", 1000)
    with pytest.raises(BadRequest, match="1,000 reads"):
        read(tmp_path, value(b"](" + b"]" * 1000 + b"e"))


def test_text_is_not_encoded_again_and_again(tmp_path):
    text = b"X" + struct.pack("<i", 10_000) + b"x" * 10_000
    again = b"c_codecs\nencode\nh\x01X\x06\x00\x00\x00latin1\x86R"
    with pytest.raises(BadRequest, match="again and again"):
        read(tmp_path, value(b"](" + text + b"q\x01" + again * 100 + b"e"))


def test_an_array_is_not_filled_again_and_again(tmp_path):
    numbers = b"T" + struct.pack("<i", 10_000) + b"x" * 10_000 + b"q\x01"
    again = array(b"M\x10\x27\x85", numbers=b"h\x01")
    with pytest.raises(BadRequest, match="again and again"):
        read(tmp_path, value(b"](" + numbers + again * 100 + b"e"))


BOMBS = {
    "a memo of 32 GiB, in 9 bytes": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "text of 4 GiB": b"\x80\x02X\xff\xff\xff\xff.",
    "bytes of 1 TiB": b"\x80\x02\x8e\x00\x00\x00\x00\x00\x01\x00\x00.",
    "a bytearray of 64 GiB": b"\x80\x02\x96\x00\x00\x00\x00\x10\x00\x00\x00.",
    "16 million lists": b"\x80\x02" + b"]" * (1 << 24) + b".",
    "text that doubles 34 times": value(
        b"c_codecs\nencode\n" + b"q\x00h\x00" * 34 + b"U\x01aX\x03\x00\x00\x00hex\x86R" * 34
    ),
    "a key whose hash takes 2^100 steps": b"\x80\x02})" + b"q\x00h\x00\x86" * 100 + b"Ns.",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_take_neither_time_nor_memory(tmp_path, name):
    """In a process that may have 512 MiB more than it has, and 20 seconds of its processor."""
    (tmp_path / "batch").write_bytes(BOMBS[name])
    code = f"""
import resource
from pathlib import Path
from droptop.data.pickles import load
from droptop.errors import BadRequest
have = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (have + 2**29,) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
try:
    load(Path({str(tmp_path / "batch")!r}))
except BadRequest as error:
    assert "MemoryError" not in str(error.__context__.__class__)
    raise SystemExit(3)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 3


def test_a_memo_is_no_larger_than_what_is_in_it(tmp_path):
    assert read(tmp_path, value(b"]K\x05r\xff\xff\xff\xffaj\xff\xff\xff\xffa")) == {"a": [5, 5]}


def test_nests_as_deep_as_it_likes(tmp_path):
    deep = read(tmp_path, value(b"]" * 100_000 + b"a" * 99_999))["a"]
    itself = read(tmp_path, value(b"]q\x01h\x01a"))["a"]
    assert len(deep) == 1
    assert itself[0] is itself


def test_unreadable_files_are_refused(tmp_path, monkeypatch):
    with pytest.raises(BadRequest, match="absent: No such file"):
        load(tmp_path / "absent")
    with pytest.raises(BadRequest, match="directory"):
        load(tmp_path)
    monkeypatch.setattr(pickles, "LARGEST_FILE", 5)
    with pytest.raises(BadRequest, match="has 6 bytes"):
        read(tmp_path, b"\x80\x02}  .")


# -- Fuzz -------------------------------------------------------------------------------------------------------------


def mutated(data: bytes, other: bytes, random: random.Random) -> bytes:
    """The file with a few bytes changed, left out, repeated, or taken from another one."""
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        start, length = random.randrange(len(data) + 1), random.choice([1, 1, 1, 1, 4, 20])
        at = random.randrange(len(other))
        piece = random.choice(
            [
                random.randbytes(1),
                random.randbytes(1),
                random.choice(INSTRUCTIONS),
                b"",
                data[start : start + 2 * length],
                other[at : at + random.randint(1, 60)],
            ]
        )
        data = data[:start] + piece + data[start + random.choice([0, length, length]) :]
    return data


INSTRUCTIONS = [
    *(bytes([code]) for code in pickles.INSTRUCTIONS + b"ioPQ\x81\x82\x93\x94\x95"),
    b"r\xff\xff\xff\xff",
    b"cposix\nmkdir\n",
    b"R",
]


@pytest.mark.parametrize("count", [1000, pytest.param(6000, marks=pytest.mark.faults)])
def test_mutated_files_are_read_or_refused(tmp_path: Path, count, fault_counts):
    """A refusal or what Python reads; nothing else is raised, and nothing runs."""
    touched = tmp_path / "touched"
    small = RECORD | {"data": RECORD["data"][:, :10].copy()}
    seeds = [python2_pickle(small), python3_pickle(small), python3_pickle(small | {"x": Touch(touched)})]
    chance, accepted, refusals = random.Random(count), 0, []
    for _ in range(count):
        data = mutated(*chance.choices(seeds, k=2), chance)
        try:
            record = read(tmp_path, data)
        except BadRequest as error:
            refusals.append(str(error))
        else:
            accepted += 1
            assert same(record, reference(data))
        assert not touched.exists()
    assert 0.03 * count < accepted < 0.5 * count  # both ends are tried
    assert not any("\n" in refusal for refusal in refusals)
    fault_counts.add("hostile pickles", count)
