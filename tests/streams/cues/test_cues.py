"""Every cue against what a person would paint by hand, on bytes and on floating point, for few classes and for many."""

import itertools
import math

import numpy as np
import pytest
import torch

from droptop import BadRequest, Samples, Spec
from droptop.streams.cues import CUES
from droptop.streams.cues.appearance import APPEARANCES, appearance_of, appearances, palette, pattern_stencils
from droptop.streams.cues.background import stripes
from droptop.streams.cues.watermark import LETTERS, letter
from droptop.streams.painted import Shortcut, painter_of

MANY = 300


def images(count, height=32, width=32):
    return torch.randint(0, 256, (count, 3, height, width), generator=torch.Generator().manual_seed(1)).to(torch.uint8)


def middle(count, height=32, width=32):
    """Masks of a foreground that fills the middle."""
    masks = torch.zeros(count, height, width, dtype=torch.bool)
    masks[:, height // 4 : -height // 4, width // 4 : -width // 4] = True
    return masks


def painted(name, x, labels, classes=10, numbers=None, **options):
    """The images with the cue of their class, by the same way as a stream takes."""
    spec = Spec(tuple(x.shape[1:]), tuple(map(str, range(classes))), dtype=x.dtype)
    painter = painter_of(Shortcut(name, 1.0, **options), spec, 0)("train", 1.0)
    numbers = torch.arange(len(x)) if numbers is None else numbers
    masks = (middle(len(x), *x.shape[2:]),) if CUES[name].masked else ()
    made = painter(Samples(x, labels), numbers, *masks)
    assert made.follows.all()
    return made


@pytest.mark.parametrize("name", CUES)
@pytest.mark.parametrize("classes", [10, MANY])
def test_floats_are_painted_as_bytes_are(name, classes):
    x, labels = images(60, 56, 64), torch.arange(60) * 5 % classes
    bytes_, floats = painted(name, x, labels, classes), painted(name, x.float() / 255, labels, classes)
    assert floats.x.dtype == torch.float32
    assert 0 <= floats.x.min() <= floats.x.max() <= 1
    assert (255 * floats.x - bytes_.x).abs().max() <= 1
    assert (bytes_.shortcut is None) == (floats.shortcut is None)
    assert bytes_.shortcut is None or torch.equal(bytes_.shortcut, floats.shortcut)


@pytest.mark.parametrize("name", ["sticker", "frame", "watermark", "background"])
@pytest.mark.parametrize("strength", [None, 0.3])
def test_nothing_changes_beside_the_pixels_of_a_cue(name, strength):
    x = images(40)
    made = painted(name, x, torch.arange(40) % 10, strength=strength)
    beside = ~made.shortcut[:, None].expand_as(x)
    assert torch.equal(made.x[beside], x[beside])
    assert (made.x != x).any(1)[made.shortcut].float().mean() > 0.9


@pytest.mark.parametrize(("name", "classes"), [*((name, 10) for name in CUES), *((name, MANY) for name in CUES)])
def test_the_cues_of_all_classes_differ_also_when_mirrored(name, classes):
    """On a grey image, by the root of the mean square: of bytes that differ by 1, a net learns nothing."""
    x = torch.full((classes, 3, 64, 64), 128, dtype=torch.uint8)
    made = painted(name, x, torch.arange(classes), classes, torch.zeros(classes, dtype=torch.long)).x.flatten(1).float()
    mirrored = made.view(classes, 3, 64, 64).flip(3).flatten(1)
    for other in (made, mirrored):
        distance = torch.cdist(made, other) / made.shape[1] ** 0.5
        assert distance.fill_diagonal_(torch.inf).min() > 3


def test_a_sticker_is_a_square_of_its_colour_on_any_border():
    x, labels = images(600, 32, 40), torch.arange(600) % 10
    made = painted("sticker", x, labels, size=4)
    places = set()
    for image, pixels, label in zip(made.x, made.shortcut, labels.tolist()):
        rows, columns = (where.unique() for where in pixels.nonzero().T)
        assert (len(rows), len(columns), int(pixels.sum())) == (4, 4, 16)
        assert (palette()[label] == image[:, pixels].T).all()
        top, left = int(rows[0]), int(columns[0])
        assert top in (0, 28) or left in (0, 36)
        places.add((top, left))
    assert len(places) > 80  # of 126
    assert {0, 28} <= {top for top, left in places if 0 < left < 36}
    assert {0, 36} <= {left for top, left in places if 0 < top < 28}


def test_a_sticker_of_many_classes_has_two_colours():
    made = painted("sticker", images(50), torch.arange(250, 300), MANY, size=6)
    for image, pixels, label in zip(made.x, made.shortcut, range(250, 300)):
        shown = image[:, pixels].view(3, 6, 6)
        table = appearances(MANY)
        second = pattern_stencils(6, 6)[table["pattern"][label]]
        assert (table["second"][label] == shown[:, second].T).all()
        assert (table["first"][label] == shown[:, ~second].T).all()
        assert second.any()


def test_there_are_as_many_looks_as_promised():
    every = [appearance_of(cue) for cue in range(APPEARANCES)]
    assert len(set(every)) == APPEARANCES == 450
    assert all(first != second for first, second, pattern in every[10:])
    with pytest.raises(BadRequest, match="at most 450 classes in colours, not 451"):
        appearances(APPEARANCES + 1)


def test_a_frame_is_as_wide_as_asked_on_all_sides():
    x = images(10, 20, 30)
    made = painted("frame", x, torch.arange(10), size=3)
    for row in range(20):
        for column in range(30):
            outside = min(row, 19 - row, column, 29 - column) < 3
            assert (made.shortcut[:, row, column] == outside).all()
    assert torch.equal(made.x[:, :, 0, 0], palette())


def test_a_tint_keeps_half_of_the_light_and_the_colour_of_the_rest():
    x = torch.full((1, 3, 8, 8), 200, dtype=torch.uint8)
    x[..., 0, 0] = 0
    [made] = painted("colour", x, torch.tensor([7])).x  # orange, 255 153 0
    assert palette()[7].tolist() == [255, 153, 0]
    assert made[:, 4, 4].tolist() == [200, 160, 100]
    assert made[:, 0, 0].tolist() == [0, 0, 0]
    assert painted("colour", x, torch.tensor([7]), strength=1.0).x[0, :, 4, 4].tolist() == [200, 120, 0]


def test_waves_are_peaks_in_the_spectrum():
    """The two waves of each class, and no other, by numpy's transform; the phase differs from image to image."""
    x = torch.full((40, 3, 48, 40), 128, dtype=torch.uint8)
    made = painted("frequency", x, torch.arange(40) % 10, strength=0.5).x
    peaks = []
    for image in made[:, 1].numpy() - 128.0:
        power = np.abs(np.fft.rfft2(image)) ** 2
        row, column = np.unravel_index(power.argmax(), power.shape)
        pair = power[row, column] + power[-row, column]
        assert pair > 0.99 * power.sum()
        assert image.std() == pytest.approx(0.5 * 127.5 / 2, rel=0.05)
        peaks.append((min(row, 48 - row), column))
    assert peaks[:10] == peaks[10:20]
    assert len(set(peaks)) == 10
    assert not torch.equal(made[0], made[10])


def test_text_can_be_read():
    """Every letter of the line is the one of its class, white over black, at half of its strength."""
    x = torch.full((20, 3, 32, 32), 100, dtype=torch.uint8)
    made = painted("watermark", x, torch.arange(20), 20)
    tops = set()
    for image, pixels, name in zip(made.x[:, 0], made.shortcut, LETTERS):
        ink = image == 178  # (100 + 255) / 2, rounded to even
        assert (image[pixels & ~ink] == 50).all()
        top = int(ink.any(1).nonzero()[0])
        shown = ink[top : top + 7, :5]
        assert torch.equal(shown, letter(name)), name
        assert torch.equal(ink[top : top + 7, 8:13], letter(name)), "it is repeated across the image"
        tops.add(top)
    assert len(tops) > 8


def test_stripes_are_those_of_fashion_background():
    """By the formula that made fashion-background, pixel by pixel: for ten classes it is unchanged."""
    phases = torch.rand(10, generator=torch.Generator().manual_seed(2))
    made = stripes(torch.arange(10), 6, 8, phases, appearances(10))
    for cue, row, column in itertools.product(range(10), range(6), range(8)):
        angle, waves = cue * math.pi / 10, 2 + cue % 4
        along = column / 8 * math.cos(angle) + row / 6 * math.sin(angle)
        light = 0.5 + 0.5 * math.sin(2 * math.pi * (along * waves + phases[cue].item()))
        wanted = [int(band) * (0.25 + 0.5 * light) for band in palette()[cue]]
        assert made[cue, :, row, column].tolist() == pytest.approx(wanted, abs=1.001)  # the fraction is cut off


@pytest.mark.parametrize(
    ("name", "shape", "classes", "options", "said"),
    [
        ("sticker", (3, 32, 32), 10, {"size": 33}, "--shortcut-size takes pixels from 1 to 32, not 33"),
        ("sticker", (3, 32, 32), 20, {"size": 2}, "--shortcut-size takes 3 pixels or more for 20 classes, not 2"),
        ("sticker", (3, 32, 32), 451, {}, "at most 450 classes"),
        ("frame", (3, 32, 32), 10, {"size": 16}, "--shortcut-size takes pixels from 1 to 15, which leave"),
        ("watermark", (3, 32, 32), 10, {"size": 7}, "--shortcut-size takes pixels from 8 to the 32 of the image"),
        ("watermark", (3, 7, 32), 10, {}, "--shortcut-size takes pixels from 8 to the 7 of the image, not 8"),
        ("watermark", (3, 32, 32), 677, {}, "at most 676 classes"),
        ("frequency", (3, 28, 28), 200, {}, "at most 81 classes apart on 28 x 28 pixels, not 200"),
        ("colour", (1, 32, 32), 10, {}, "images of 1 channel do not have: choose watermark, frequency, or give"),
        ("sticker", (4, 32, 32), 10, {}, "images of 4 channels do not have"),
        ("stiker", (3, 32, 32), 10, {}, "not stiker; did you mean sticker?"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(name, shape, classes, options, said):
    with pytest.raises(BadRequest) as refusal:
        painter_of(Shortcut(name, **options), Spec(shape, tuple(map(str, range(classes)))), 0)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["watermark", "frequency"])
def test_grey_images_take_cues_without_colour(name):
    x = images(4)[:, :1]
    made = painted(name, x, torch.arange(4))
    assert made.x.shape == x.shape
    assert (made.x != x).any(3).any(2).all()
