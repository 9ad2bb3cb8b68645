import io

import numpy as np
import pytest
import torch
from PIL import Image

from droptop import Samples, Spec, Stream, StreamConfig
from droptop.figures.contact_sheet import GAP, IMAGES, contact_sheet

CLASSES = ("ant", "bee", "cow")


def noise(count, seed, side=12):
    random = np.random.default_rng(seed)
    x = torch.from_numpy(random.integers(0, 255, (count, 3, side, side), dtype=np.uint8))
    return Samples(x, torch.arange(count) % len(CLASSES))


def place(sheet, image, scale):
    """Where on the sheet an image lies, enlarged."""
    big = image.permute(1, 2, 0).numpy().repeat(scale, 0).repeat(scale, 1)
    height, width = big.shape[:2]
    corners = np.argwhere((sheet[: 1 - height, : 1 - width] == big[0, 0]).all(2))
    found = [(y, x) for y, x in corners.tolist() if np.array_equal(sheet[y : y + height, x : x + width], big)]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize("tests", [1, 7])
def test_every_set_and_class_is_shown(tests):
    train, sets = noise(60, 0), {f"set {n}": noise(12, n + 1) for n in range(tests)}
    stream = Stream("mine", Spec((3, 12, 12), CLASSES), train, sets, StreamConfig(split="cow,ant/bee", batch=4), seed=0)
    sheet = np.asarray(Image.open(io.BytesIO(contact_sheet(stream))).convert("RGB"))
    scale, side = 3, 3 * (12 + GAP)
    arrived = torch.cat(stream.order)
    corner = None
    for row, label in enumerate((2, 0, 1)):  # in the order in which they arrive
        first = arrived[train.y[arrived] == label][:IMAGES]
        found = [place(sheet, train.x[number], scale) for number in first]
        corner = corner or found[0]
        top = corner[0] + row * side + (row == 2) * scale * GAP  # a wider gap before the second task
        assert found == [(top, corner[1] + column * side) for column in range(IMAGES)]
    lefts = set()
    for samples in sets.values():
        found = [place(sheet, image, scale) for image in samples.x]  # four of a class, all of which fit
        tops = [y for y, _ in found]
        assert tops[0] - tops[2] == side
        lefts.add((found[2][0] >= corner[0] + 3 * side, found[2][1]))
    assert len(lefts) == tests  # a block each


def test_missing_images_stay_white():
    spec, config = Spec((3, 12, 12), CLASSES), StreamConfig(tasks=1, batch=4)
    stream = Stream("mine", spec, noise(30, 0), {"few": noise(2, 1)}, config, seed=0)
    sheet = np.asarray(Image.open(io.BytesIO(contact_sheet(stream))).convert("RGB"))
    assert (sheet[-60:, -300:] == 255).all()


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_floating_point_and_other_channels_are_shown_as_bytes_are(channels):
    """Images from 0 to 1 look as from 0 to 255 do; with one or two channels grey, of four the first three are shown."""
    x, y = noise(60, 0).x.repeat(1, 2, 1, 1)[:, :channels], torch.arange(60) % len(CLASSES)

    def stream_of(images):
        spec, config = Spec((channels, 12, 12), CLASSES, dtype=images.dtype), StreamConfig(tasks=1, batch=4)
        return Stream("mine", spec, Samples(images, y), {}, config, 0)

    sheet = contact_sheet(stream_of(x))
    assert contact_sheet(stream_of(x.float() / 255)) == sheet
    arrived = torch.cat(stream_of(x).order)
    first = x[arrived[y[arrived] == 0][0]]
    image = first[:3] if channels > 2 else first[:1].expand(3, -1, -1)
    assert place(np.asarray(Image.open(io.BytesIO(sheet)).convert("RGB")), image, 3) is not None
