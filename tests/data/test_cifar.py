"""CIFAR's files: read once, checked, refused where they are damaged."""

import dataclasses

import numpy as np
import pytest

from droptop import BadRequest, make_stream
from droptop.data import cifar as cifar_files
from droptop.data.root import data_root
from droptop.streams import cifar

from formats import cifar_rows, python2_pickle, write_cifar10, write_cifar100


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Two images of a class in a file are enough to test with."""
    cifar.images.cache_clear()
    monkeypatch.setattr(cifar, "CIFAR10", dataclasses.replace(cifar.CIFAR10, rows=20, test_rows=20))
    monkeypatch.setattr(cifar, "CIFAR100", dataclasses.replace(cifar.CIFAR100, rows=200, test_rows=100))


def rewrite(path, **changes):
    """The file with some entries replaced, or left out where they are None."""
    labels = list(range(10)) * 2
    record = {"labels": labels, "data": cifar_rows(labels), "label_names": [f"class {n}" for n in range(10)]} | changes
    path.write_bytes(python2_pickle({key: value for key, value in record.items() if value is not None}))


def test_files_are_read_once_per_process(tmp_path):
    folder = write_cifar10(tmp_path)
    first = make_stream("split-cifar10", root=tmp_path, batch=4)
    (folder / "test_batch").unlink()
    again = make_stream("split-cifar10", seed=1, root=folder / "..", batch=4)
    assert again.train.x is first.train.x


@pytest.mark.parametrize(
    ("file", "changes", "reason"),
    [
        ("data_batch_2", {"data": None}, "has no 'data'"),
        ("data_batch_2", {"labels": None}, "has no 'labels'"),
        ("data_batch_2", {"data": [1, 2]}, "'data' is a list instead of a ndarray"),
        ("data_batch_2", {"labels": "0123"}, "'labels' is a bytes instead of a list"),
        ("data_batch_2", {"data": cifar_rows([0] * 19)}, "19 x 3072 instead of 20 images x 3072"),
        ("test_batch", {"data": cifar_rows([0] * 21)}, "21 x 3072 instead of 20 images"),
        ("data_batch_2", {"data": cifar_rows([0] * 20)[:, :-1].copy()}, "20 x 3071"),
        ("data_batch_2", {"data": cifar_rows([0] * 20).reshape(20, 3, 1024)}, "20 x 3 x 1024"),
        ("data_batch_2", {"data": cifar_rows([0] * 20).astype(np.float32)}, "float32 instead of uint8"),
        ("data_batch_2", {"labels": list(range(10))}, "10 labels of 20 images"),
        ("data_batch_2", {"labels": [*range(10), *range(1, 11)]}, "image 19 is 10 instead of a number from 0 to 9"),
        ("data_batch_2", {"labels": [-1] * 20}, "image 0 is -1"),
        ("data_batch_2", {"labels": ["cat"] * 20}, "image 0 is a bytes"),
        ("test_batch", {"labels": [0] * 20}, "no image of class automobile"),
        ("batches.meta", {"label_names": None}, "has no 'label_names'"),
        ("batches.meta", {"label_names": ["cat"] * 10}, "1 different names in a list of 10 instead of 10 classes"),
        ("batches.meta", {"label_names": list("abcdefghi")}, "9 different names"),
        ("batches.meta", {"label_names": [*"abcdefghi", 7]}, "no name of a class"),
        ("batches.meta", {"label_names": [*"abcdefghi", "\x1b[2J"]}, "no name of a class"),
    ],
)
def test_damaged_files_are_refused(tmp_path, file, changes, reason):
    path = write_cifar10(tmp_path) / file
    rewrite(path, **changes)
    with pytest.raises(BadRequest, match=reason) as error:
        make_stream("split-cifar10", root=tmp_path, batch=4)
    assert str(path) in str(error.value)


def test_a_class_without_images_is_refused(tmp_path):
    folder = write_cifar10(tmp_path)
    for number in range(1, 6):
        rewrite(folder / f"data_batch_{number}", labels=[0, *range(9)] * 2)
    with pytest.raises(BadRequest, match="training files: no image of class truck"):
        make_stream("split-cifar10", root=tmp_path, batch=4)


@pytest.mark.parametrize("name", ["data_batch_5", "test_batch", "batches.meta"])
def test_missing_and_truncated_files_are_refused(tmp_path, name):
    path = write_cifar10(tmp_path) / name
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(BadRequest, match=f"{name} is no CIFAR file, or a damaged one"):
        make_stream("split-cifar10", root=tmp_path, batch=4)
    path.unlink()
    with pytest.raises(BadRequest, match=f"{name}: No such file"):
        make_stream("split-cifar10", root=tmp_path, batch=4)


def test_missing_data_is_refused_with_a_hint(tmp_path, monkeypatch):
    with pytest.raises(
        BadRequest,
        match=f"CIFAR-100 .*{tmp_path}/cifar-100-python; `droptop data download cifar100 --root {tmp_path}` fetches it",
    ):
        make_stream("split-cifar100", root=tmp_path)
    (tmp_path / "cifar-10-python.tar.gz").touch()
    monkeypatch.setenv("DROPTOP_DATA", str(tmp_path))
    with pytest.raises(BadRequest, match=r"`droptop data download cifar10` unpacks .*/cifar-10-python.tar.gz"):
        make_stream("split-cifar10")


def test_data_is_looked_for_in_the_root(tmp_path, monkeypatch):
    monkeypatch.delenv("DROPTOP_DATA", raising=False)
    assert str(data_root(None)) == "data"
    monkeypatch.setenv("DROPTOP_DATA", "/elsewhere")
    assert str(data_root(None)) == "/elsewhere"
    assert data_root(tmp_path) == tmp_path


def test_check_counts_images(tmp_path):
    folder, seen = write_cifar10(tmp_path), []
    said = cifar_files.check(cifar.CIFAR10, tmp_path, lambda *step: seen.append(step))
    assert said == "100 + 20 images of 10 classes, 32 x 32"
    assert seen[0] == (0, 7, "batches.meta")
    assert seen[-1] == (7, 7, "CIFAR-10")
    rewrite(folder / "test_batch", labels=[11] * 20)
    with pytest.raises(BadRequest, match="test_batch"):
        cifar_files.check(cifar.CIFAR10, tmp_path, lambda *step: None)
    write_cifar100(tmp_path)
    assert cifar_files.check(cifar.CIFAR100, tmp_path, lambda *step: None) == "200 + 100 images of 100 classes, 32 x 32"
