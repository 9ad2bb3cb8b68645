import math
import random

import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch._subclasses import FakeTensorMode

from droptop.streams.augment import augment, random_boxes, resize_boxes

from toys import differences, feed, snapshot, toy_batches, toy_learner


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("height", "width"), [(64, 64), (32, 48), (7, 5)])
def test_resizing_against_a_crop_at_a_time(height, width):
    x = torch.rand(60, 3, height, width, generator=seeded())
    boxes = random_boxes(60, height, width, seeded(1), (0.08, 1.0))
    mirror = torch.rand(60, generator=seeded(2)) < 0.5
    resized = resize_boxes(x, boxes, mirror)
    for image, box, flipped, result in zip(x, boxes.int().T.tolist(), mirror, resized):
        top, left, h, w = box
        crop = image[None, :, top : top + h, left : left + w]
        expected = F.interpolate(crop, (height, width), mode="bilinear", align_corners=False)[0]
        torch.testing.assert_close(result, expected.flip(-1) if flipped else expected, atol=2e-5, rtol=0)


def test_uint8_stays_uint8():
    x = torch.randint(0, 256, (40, 3, 16, 16), dtype=torch.uint8, generator=seeded())
    boxes, mirror = random_boxes(40, 16, 16, seeded(1), (0.2, 1.0)), torch.zeros(40, dtype=torch.bool)
    resized = resize_boxes(x, boxes, mirror)
    assert resized.dtype == torch.uint8
    exact = resize_boxes(x.double(), boxes, mirror)
    assert exact.dtype == torch.float64
    assert (resized - exact).abs().max() <= 0.5 + 1e-3


def test_a_box_that_is_the_whole_image_changes_nothing():
    for side in (16, 64, 224):
        x = torch.randint(0, 256, (4, 3, side, side), dtype=torch.uint8, generator=seeded())
        whole = torch.tensor([[0.0], [0.0], [side], [side]]).expand(4, 4)
        assert torch.equal(resize_boxes(x, whole, torch.zeros(4, dtype=torch.bool)), x)
        assert torch.equal(resize_boxes(x, whole, torch.ones(4, dtype=torch.bool)), x.flip(-1))
        torch.testing.assert_close(
            resize_boxes(x.float(), whole, torch.zeros(4, dtype=torch.bool)), x.float(), atol=0.02, rtol=0
        )


def slow_box(height, width, area, source):
    """torchvision's RandomResizedCrop.get_params, a box at a time."""
    for _ in range(10):
        target = height * width * source.uniform(*area)
        ratio = math.exp(source.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(target * ratio)), round(math.sqrt(target / ratio))
        if 0 < w <= width and 0 < h <= height:
            return source.randint(0, height - h), source.randint(0, width - w), h, w
    return 0, 0, height, width


@pytest.mark.parametrize("area", [(0.08, 1.0), (0.5, 1.0)])
def test_boxes_are_distributed_as_torchvisions(area):
    source, count = random.Random(0), 20000
    slow = torch.tensor([slow_box(64, 64, area, source) for _ in range(count)], dtype=torch.float)
    fast = random_boxes(count, 64, 64, seeded(), area).T
    top, left, h, w = fast.T
    assert torch.equal(fast, fast.round())
    assert (fast >= 0).all()
    assert (h >= 1).all()
    assert (top + h <= 64).all()
    assert (left + w <= 64).all()
    for figure in (
        lambda b: b[:, 2] * b[:, 3],
        lambda b: (b[:, 3] / b[:, 2]).log(),
        lambda b: b[:, 0],
        lambda b: b[:, 1] / (65 - b[:, 3]),
    ):
        assert stats.ks_2samp(figure(slow), figure(fast)).pvalue > 1e-3


def test_without_a_fitting_box_the_largest_centre_is_taken():
    top, left, h, w = random_boxes(50, 8, 100, seeded(), (1.0, 1.0))  # the whole area at 4 : 3 is wider than 8 pixels
    assert (h == 8).all()
    assert (w == 11).all()  # 8 * 4 / 3
    assert ((top == 0) & (left == 44)).all()
    assert (random_boxes(5, 10, 10, seeded(), (1.0, 1.0)).T[:, 2:] <= 10).all()


def test_augmentations_are_chosen_by_name():
    x = torch.randint(0, 256, (8, 3, 16, 16), dtype=torch.uint8, generator=seeded())
    assert augment(x, "none", seeded()) is x
    one, again, other = (augment(x, "crop-resize", seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    many = x.repeat(50, 1, 1, 1)
    whole = augment(many, "crop-resize", seeded(), 1.0)  # the only box is the image
    mirrored = (whole == many.flip(-1)).flatten(1).all(1)
    assert (mirrored | (whole == many).flatten(1).all(1)).all()
    assert 150 < mirrored.sum() < 250


@pytest.mark.parametrize("kind", ["crop-flip", "crop-resize"])
def test_augmentation_never_waits_for_the_device(kind):
    """Fake tensors have none: whatever would wait for the device fails."""
    with FakeTensorMode():
        x = torch.zeros(8, 3, 64, 64, dtype=torch.uint8)
        assert augment(x, kind, seeded()).shape == x.shape


@pytest.mark.parametrize("method", ["er", "derpp"])
def test_a_learner_crops_from_its_own_generator(method):
    one, again = (feed(toy_learner(method, augment="crop-resize"), toy_batches(4)) for _ in range(2))
    other = feed(toy_learner(method, augment="crop-resize", crop_area=1.0), toy_batches(4))
    assert not differences(snapshot(one), snapshot(again))
    assert differences(snapshot(one), snapshot(other))
    x = toy_batches(1)[0][0]
    assert one.prepare(x).abs().max() <= 2.01  # pixels of 0 to 1, less 0.5, over 0.25
