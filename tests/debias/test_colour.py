"""Colour jitter against its five changes, one after the other, pixel by pixel."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.spatial.transform import Rotation

from droptop import BadRequest
from droptop.debias import Colour
from droptop.debias.colour import ColourConfig
from droptop.rng import generator

IMAGES = torch.rand(6, 3, 3, 4, generator=torch.Generator().manual_seed(0))
STILL = {"brightness": 0.0, "contrast": 0.0, "saturation": 0.0, "hue": 0.0, "gray": 0.0}
ALL = {"brightness": 0.4, "contrast": 0.7, "saturation": 0.9, "hue": 0.4, "gray": 0.3, "share": 0.7}


def gray(pixel):
    return 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]


def slow_jitter(image, brightness, contrast, saturation, circles, turns_gray):
    """The changed pixels of one image (3, h, w) for given factors."""
    pixels = [pixel * brightness for pixel in image.reshape(3, -1).T.astype(float)]
    mean_gray = sum(map(gray, pixels)) / len(pixels)
    pixels = [contrast * pixel + (1 - contrast) * mean_gray for pixel in pixels]
    pixels = [saturation * pixel + (1 - saturation) * gray(pixel) for pixel in pixels]
    turn = Rotation.from_rotvec(2 * math.pi * circles * np.ones(3) / math.sqrt(3))
    pixels = [turn.apply(pixel) for pixel in pixels]
    if turns_gray:
        pixels = [np.full(3, gray(pixel)) for pixel in pixels]
    return np.array(pixels).T.reshape(image.shape)


def member(seed=0, **options):
    return Colour(ColourConfig(**options), 4, generator(seed, "debias"))


def with_draws(options, drawn, images):
    """What it makes of images where its random numbers are these: a row per change, and last the one of `share`."""
    colour = member(**options)
    colour.uniform = lambda *shape, device: drawn.view(shape)
    return colour.images(images)


def factors(options, drawn):
    """Brightness, contrast, saturation, circles and gray of one image by its random numbers."""
    one, two, three, turn, gray_one = drawn
    jitter = [1 + options[name] * (2 * u - 1) for name, u in zip(STILL, (one, two, three))]
    return *jitter, options["hue"] * (2 * turn - 1), gray_one < options["gray"]


def test_five_changes_one_after_the_other():
    drawn = torch.rand(6, 6, generator=torch.Generator().manual_seed(1))
    drawn[4, :3], drawn[5] = torch.tensor([0.1, 0.29, 0.31]), torch.tensor([0.1, 0.2, 0.3, 0.69, 0.71, 0.5])
    out = with_draws(ALL, drawn, IMAGES)
    for row, image in enumerate(IMAGES.numpy()):
        if drawn[5, row] >= ALL["share"]:
            assert torch.equal(out[row], IMAGES[row])
        else:
            expected = slow_jitter(image, *factors(ALL, drawn[:5, row].tolist()))
            np.testing.assert_allclose(out[row].numpy(), expected, atol=1e-5)
    spread = out[:5].amax(1) - out[:5].amin(1)
    assert [bool((row < 1e-5).all()) for row in spread] == [True, True, False, False, False]


@pytest.mark.parametrize("channels", [1, 2])
def test_other_than_three_channels_have_brightness_and_contrast_alone(channels):
    """About the mean of all that an image has: which of its channels are gray, nobody knows."""
    drawn, images = torch.rand(6, 6, generator=torch.Generator().manual_seed(2)), IMAGES[:, :channels]
    out = with_draws(ALL | {"share": 1.0}, drawn, images)
    for row, image in enumerate(images.numpy()):
        brightness, contrast, *_ = factors(ALL, drawn[:5, row].tolist())
        bright = image * brightness
        np.testing.assert_allclose(out[row].numpy(), contrast * bright + (1 - contrast) * bright.mean(), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("brightness", lambda before, after: after[:, 0] / before[:, 0]),
        # By the quotient of what tells two pixels apart, or the channels of one, before and after:
        ("contrast", lambda before, after: (after[:, 0] - after[:, 1]) / (before[:, 0] - before[:, 1])),
        ("saturation", lambda before, after: (after[0] - after[1]) / (before[0] - before[1])),
    ],
)
def test_factors_are_uniform_about_one(name, read):
    images = IMAGES[:1].expand(500, -1, -1, -1)
    out = member(**STILL | {name: 0.3}).images(images)
    drawn = [read(*(each.reshape(3, -1) for each in pair)).mean().item() for pair in zip(images, out)]
    assert stats.kstest(drawn, stats.uniform(0.7, 0.6).cdf).pvalue > 0.001


def test_hues_turn_both_ways_up_to_their_largest():
    """Seen along the gray axis: the angle between what a pixel was and what it is."""
    images = IMAGES[:1].expand(500, -1, -1, -1)
    out = member(**STILL | {"hue": 0.2}).images(images)
    plane = np.array([[1, -0.5, -0.5], [0, math.sqrt(0.75), -math.sqrt(0.75)]])
    before, after = (plane @ each[:, :, 0, 0].numpy().T for each in (images, out))
    turned = np.angle((after[0] + 1j * after[1]) / (before[0] + 1j * before[1])) / (2 * math.pi)
    assert stats.kstest(turned, stats.uniform(-0.2, 0.4).cdf).pvalue > 0.001
    torch.testing.assert_close(out.sum(1), images.sum(1))  # along that axis nothing moves


@pytest.mark.parametrize(("name", "chance"), [("gray", 0.2), ("share", 0.6)])
def test_shares_are_chances(name, chance):
    images = IMAGES[:1].expand(2000, -1, -1, -1)
    out = member(**STILL | {"gray": 1.0} | {name: chance}).images(images)
    changed = (out != images).flatten(1).any(1)
    assert changed.float().mean().item() == pytest.approx(chance, abs=0.04)
    assert torch.equal(out[~changed], images[~changed])


def test_a_share_of_nothing_changes_nothing():
    assert torch.equal(member(**ALL | {"share": 0.0}).images(IMAGES), IMAGES)


def test_changes_of_no_strength_change_nothing():
    assert torch.equal(member(**STILL).images(IMAGES), IMAGES)


def test_no_constant_is_state():
    assert member().state_dict() == {}


@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation", "gray", "share"])
@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan")])
def test_bad_settings_are_refused(name, value):
    with pytest.raises(BadRequest) as error:
        ColourConfig(**{name: value})
    assert str(error.value) == f"--colour.{name} takes a number from 0 to 1, not {value}"


def test_half_a_circle_is_the_largest_hue():
    with pytest.raises(BadRequest) as error:
        ColourConfig(hue=0.6)
    assert str(error.value) == "--colour.hue takes a number from 0 to 0.5, not 0.6"
