"""Small data sets in the formats of their authors, written without the code that reads them."""

import gzip
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np


def python2_pickle(record: dict[str, Any]) -> bytes:
    """The bytes that python 2's cPickle writes under protocol 2: text as `U` and `T`, a dtype by integers."""
    return b"\x80\x02" + _python2(record) + b"."


def _python2(value: Any) -> bytes:
    match value:
        case dict():
            return b"}q\x01(" + b"".join(_python2(key) + _python2(item) for key, item in value.items()) + b"u"
        case list():
            return b"]r\x00\x01\x00\x00(" + b"".join(map(_python2, value)) + b"e"
        case str():
            return _python2(value.encode())
        case bytes() if len(value) < 256:
            return b"U" + bytes([len(value)]) + value
        case bytes():
            return b"T" + struct.pack("<i", len(value)) + value
        case int() if 0 <= value < 256:
            return b"K" + bytes([value])
        case int() if 0 <= value < 65536:
            return b"M" + struct.pack("<H", value)
        case int():
            return b"J" + struct.pack("<i", value)
        case np.ndarray():
            shape = b"(" + b"".join(_python2(side) for side in value.shape) + b"t"
            kind = value.dtype.str
            dtype = (
                b"cnumpy\ndtype\nq\x09"
                + _python2(kind[1:])
                + b"K\x00K\x01\x87Rq\x0a(K\x03"
                + _python2(kind[0])
                + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
            )
            return (
                b"cnumpy.core.multiarray\n_reconstruct\nq\x06cnumpy\nndarray\nq\x07K\x00\x85U\x01b\x87Rq\x08(K\x01"
                + shape
                + dtype
                + b"\x89"
                + _python2(value.tobytes())
                + b"tb"
            )
    raise TypeError(type(value))


def python3_pickle(record: dict[str, Any]) -> bytes:
    """The same under protocol 2 from python 3, whose bytes become text and `_codecs.encode`."""
    return pickle.dumps({key.encode(): value for key, value in record.items()}, protocol=2)


def cifar_rows(labels: list[int], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (len(labels), 3072), dtype=np.uint8)


def write_cifar10(root: Path, each: int = 2, dump: Any = python2_pickle) -> Path:
    """CIFAR-10 with `each` images of a class in each of its six files."""
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    labels = list(range(10)) * each
    for seed, name in enumerate([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]):
        record = {
            "batch_label": name,
            "labels": labels,
            "data": cifar_rows(labels, seed),
            "filenames": [f"image_{n}.png" for n in range(len(labels))],
        }
        (folder / name).write_bytes(dump(record))
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    (folder / "batches.meta").write_bytes(dump({"label_names": names, "num_vis": 3072}))
    return folder


def write_cifar100(root: Path, each: int = 2, dump: Any = python2_pickle) -> Path:
    """CIFAR-100 with `each` images of a class in its training file, and one in its test file."""
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    for seed, (name, labels) in enumerate({"train": list(range(100)) * each, "test": list(range(100))}.items()):
        coarse = [label // 5 for label in labels]
        record = {"fine_labels": labels, "coarse_labels": coarse, "data": cifar_rows(labels, seed)}
        (folder / name).write_bytes(dump(record))
    (folder / "meta").write_bytes(dump({"fine_label_names": [f"class {n}" for n in range(100)]}))
    return folder


def idx_bytes(numbers: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{numbers.ndim}I", 0, 0, 8, numbers.ndim, *numbers.shape) + numbers.tobytes()


def write_mnist(root: Path, train: int, test: int, compressed: bool = False) -> Path:
    """MNIST with so many images; a digit is a bright square on black, with one pixel of each lesser brightness."""
    folder = root / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for part, rows in (("train", train), ("t10k", test)):
        images = np.zeros((rows, 28, 28), np.uint8)
        images[:, 8:20, 8:20] = 255
        images[:, 4, :20] = np.arange(1, 255, 13)
        labels = (np.arange(rows) % 10).astype(np.uint8)
        for kind, numbers in (("images-idx3", images), ("labels-idx1", labels)):
            name, data = f"{part}-{kind}-ubyte", idx_bytes(numbers)
            (folder / (name + ".gz" if compressed else name)).write_bytes(gzip.compress(data) if compressed else data)
    return folder
