"""What travels between the rooms: rows that are split, and sources that are cut without being copied."""

import math

import pytest
import torch

from droptop import BadBatch, BadRequest, Samples, Spec
from droptop.types import Subset, split_rows

from toys import Elsewhere


def samples(count=7):
    x = torch.arange(count, dtype=torch.uint8)[:, None, None, None].expand(count, 1, 2, 2)
    return Samples(x, torch.arange(count) % 3, torch.arange(count) % 2 == 0, x[:, 0] > 3)


@pytest.mark.parametrize("sizes", [3, [2, 5], [0, 7]])
def test_rows_are_split_as_tensors_are(sizes):
    rows = {"x": torch.arange(14).view(7, 2), "y": torch.arange(7)}
    parts = split_rows(rows, sizes)
    assert [part.keys() for part in parts] == [rows.keys()] * len(parts)
    for name, column in rows.items():
        assert all(map(torch.equal, (part[name] for part in parts), column.split(sizes)))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_subset_gives_its_own_rows_of_the_source(elsewhere):
    whole = samples()
    subset = Subset(Elsewhere(whole) if elsewhere else whole, torch.tensor([6, 0, 3]))
    assert len(subset) == 3
    assert subset.y.tolist() == [0, 0, 0]
    drawn = subset[torch.tensor([2, 0])]
    assert drawn.x[:, 0, 0, 0].tolist() == [3, 6]
    assert drawn.follows.tolist() == [False, True]
    twice = Subset(subset, torch.tensor([1]))  # rows count within the subset
    assert twice[torch.tensor([0])].x[0, 0, 0, 0] == 0


def test_samples_keep_what_belongs_together():
    drawn = samples()[torch.tensor([5, 2])]
    assert drawn.x[:, 0, 0, 0].tolist() == [5, 2]
    assert (drawn.y.tolist(), drawn.follows.tolist()) == ([2, 2], [False, True])
    assert drawn.shortcut.flatten(1).all(1).tolist() == [True, False]
    plain = Samples(samples().x, samples().y)[torch.tensor([0])]
    assert (plain.follows, plain.shortcut) == (None, None)


def test_samples_are_tensors_of_one_length():
    x, y = torch.zeros(2, 1, 4, 4), torch.zeros(2, dtype=torch.int64)
    assert len(Samples(x, y)) == 2  # images in float32 too, which a spec may have
    for bad in ((x.numpy(), y), (x, y.tolist()), (x, y, [True, False])):
        with pytest.raises(BadBatch, match=r"must be a tensor, not (ndarray|list): torch.as_tensor makes one"):
            Samples(*bad)
    with pytest.raises(BadBatch, match="there are 2 images and 1 labels"):
        Samples(x, y[:1])
    with pytest.raises(BadBatch, match=r"int64, not torch\.int32: y\.long\(\) makes them so"):
        Samples(x, y.int())


@pytest.mark.parametrize("classes", [(), ("a", "a"), "ab", 3])
def test_classes_have_names_that_differ(classes):
    with pytest.raises(BadRequest, match="classes must be one name or more"):
        Spec((3, 8, 8), classes)


@pytest.mark.parametrize("shape", [(3, 8), (3, 0, 8), (1, 3, 8, 8)])
def test_a_shape_is_three_numbers_from_1(shape):
    with pytest.raises(BadRequest, match="shape must be channels, height and width"):
        Spec(shape, ("a", "b"))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"dtype": torch.int64}, r"dtype must be torch.uint8 or floating point, not torch.int64"),
        ({"dtype": torch.bool}, r"dtype must be torch.uint8 or floating point, not torch.bool"),
        ({"mean": (0.5, 0.5)}, r"mean must be one number, or one per channel, not \(0.5, 0.5\)"),
        ({"std": (0.5, 0.5, 0.0)}, r"std must be one number above 0, or one per channel, not \(0.5, 0.5, 0.0\)"),
        ({"std": -1.0}, "std must be one number above 0"),
        ({"mean": math.nan}, "mean must be one number, or one per channel, not nan"),
    ],
)
def test_pixels_are_normalised_by_numbers_that_make_sense(wrong, says):
    with pytest.raises(BadRequest, match=says):
        Spec((3, 8, 8), ("a", "b"), **wrong)
    assert Spec((3, 8, 8), ("a", "b"), torch.float16, mean=(-1.0, 0.0, 2.0), std=(0.1, 1.0, 9.0))


def test_channels_that_come_last_are_warned_of():
    with pytest.warns(UserWarning, match=r"channels, height and width: \(32, 32, 3\) are images of 32 channels"):
        Spec((32, 32, 3), ("cat", "dog"))
