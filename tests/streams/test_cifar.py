import dataclasses

import numpy as np
import pytest
import torch

from droptop import make_stream
from droptop.streams import STREAMS, cifar

from formats import cifar_rows, python2_pickle, python3_pickle, write_cifar10, write_cifar100


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Two images of a class in a file are enough to test with."""
    cifar.images.cache_clear()
    monkeypatch.setattr(cifar, "CIFAR10", dataclasses.replace(cifar.CIFAR10, rows=20, test_rows=20))
    monkeypatch.setattr(cifar, "CIFAR100", dataclasses.replace(cifar.CIFAR100, rows=200, test_rows=100))


@pytest.mark.parametrize("dump", [python2_pickle, python3_pickle])
def test_split_cifar10(tmp_path, dump):
    write_cifar10(tmp_path, dump=dump)
    stream = make_stream("split-cifar10", root=tmp_path, batch=4)
    assert stream.spec.classes[:3] == ("airplane", "automobile", "bird")
    assert stream.tasks == ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))
    assert (stream.train.x.shape, stream.train.x.dtype) == ((100, 3, 32, 32), torch.uint8)
    assert stream.train.y.tolist() == list(range(10)) * 10
    assert (stream.train.follows, stream.train.shortcut) == (None, None)
    rows = np.stack([cifar_rows([0] * 20, seed) for seed in range(5)]).reshape(100, 3, 32, 32)  # planes of a colour
    assert np.array_equal(stream.train.x.numpy(), rows)
    assert list(stream.tests) == ["clean"]
    assert np.array_equal(stream.tests["clean"].x.numpy(), cifar_rows([0] * 20, 5).reshape(20, 3, 32, 32))


@pytest.mark.parametrize("dump", [python2_pickle, python3_pickle])
def test_split_cifar100(tmp_path, dump):
    write_cifar100(tmp_path, dump=dump)
    stream = make_stream("split-cifar100", root=tmp_path)
    assert stream.tasks == tuple(tuple(range(start, start + 20)) for start in range(0, 100, 20))
    assert (len(stream.train), len(stream.tests["clean"])) == (200, 100)
    assert stream.train.y.tolist() == list(range(100)) * 2  # fine labels
    assert stream.spec.classes[99] == "class 99"


def test_presets_are_the_papers():
    preset = {"width": 64, "stem": "3x3", "lr": 0.1, "augment": "crop-flip"}
    assert STREAMS["split-cifar10"].preset == preset | {"memory": 500}
    assert STREAMS["split-cifar100"].preset == preset | {"memory": 2000}
