"""MNIST's files: plain or compressed, checked, refused where they are damaged."""

import numpy as np
import pytest
import torch

from droptop import BadRequest, make_stream
from droptop.data import mnist
from droptop.errors import Damaged

from formats import idx_bytes, write_mnist

TRAIN, TEST = 4000, 2000


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(mnist, "PARTS", {"train": TRAIN, "t10k": TEST})
    write_mnist(tmp_path, TRAIN, TEST)
    yield tmp_path
    mnist._cached.cache_clear()


def test_compressed_files_give_the_same(root, tmp_path_factory):
    other = tmp_path_factory.mktemp("compressed")
    write_mnist(other, TRAIN, TEST, compressed=True)
    plain, compressed = (make_stream("split-mnist", root=folder) for folder in (root, other))
    assert torch.equal(plain.train.x, compressed.train.x)
    assert torch.equal(plain.tests["clean"].y, compressed.tests["clean"].y)


@pytest.mark.parametrize(
    ("file", "data", "reason"),
    [
        (
            "train-images-idx3-ubyte",
            idx_bytes(np.zeros((TRAIN - 1, 28, 28), np.uint8)),
            "3,999 x 28 x 28 numbers instead",
        ),
        ("t10k-labels-idx1-ubyte", idx_bytes(np.zeros(TEST + 1, np.uint8)), "2,001 numbers instead of 2,000"),
        ("train-labels-idx1-ubyte", idx_bytes((np.arange(TRAIN) % 11).astype(np.uint8)), "image 10 is 10 instead of"),
        ("t10k-labels-idx1-ubyte", idx_bytes((np.arange(TEST) % 9).astype(np.uint8)), "no image of class 9"),
        ("t10k-labels-idx1-ubyte", b"<html>", "no idx file"),
    ],
)
def test_damaged_files_are_refused(root, file, data, reason):
    (root / "MNIST/raw" / file).write_bytes(data)
    with pytest.raises(BadRequest, match=reason) as error:
        make_stream("split-mnist", root=root)
    assert file in str(error.value)


def test_missing_files_are_named(root, tmp_path_factory):
    (root / "MNIST/raw/t10k-images-idx3-ubyte").unlink()
    with pytest.raises(BadRequest, match=r"t10k-images-idx3-ubyte is missing, and so is t10k-images-idx3-ubyte.gz"):
        make_stream("split-mnist", root=root)
    empty = tmp_path_factory.mktemp("empty")
    with pytest.raises(BadRequest, match=f"{empty}/MNIST/raw; `droptop data download mnist --root {empty}`"):
        make_stream("biased-mnist", root=empty)


def test_check_counts_images(root):
    seen = []
    assert mnist.check(root, lambda *step: seen.append(step)) == "4,000 + 2,000 images of 10 classes, 28 x 28"
    assert [done for done, _, _ in seen] == [0, 1, 2, 3, 4]
    assert {total for _, total, _ in seen} == {4}
    for name in ("train-images-idx3", "t10k-labels-idx1"):
        (root / f"MNIST/raw/{name}-ubyte").write_bytes(b"no idx file")
    (root / "MNIST/raw/train-labels-idx1-ubyte").unlink()
    with pytest.raises(Damaged) as error:
        mnist.check(root, lambda *step: None)
    assert [reason.partition("-ubyte ")[0].rpartition("/")[2] for reason in error.value.reasons] == [
        "train-images-idx3",
        "train-labels-idx1",
        "t10k-labels-idx1",
    ]
