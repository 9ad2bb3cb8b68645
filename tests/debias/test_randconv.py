"""Random convolution against scipy: every image's filter is read off what becomes of single white pixels."""

import numpy as np
import pytest
import torch
from scipy import signal, stats

from droptop import BadRequest
from droptop.debias import RandConv
from droptop.debias.randconv import RandConvConfig
from droptop.rng import generator

IMAGES = torch.rand(5, 3, 7, 6, generator=torch.Generator().manual_seed(0))


def apply(images, seed=0, **options):
    """What it makes of images; the same seed draws the same filters for other images of this shape."""
    return RandConv(RandConvConfig(**options), 4, generator(seed, "debias")).images(images)


def filters_of(shape, seed=0, kernel=3):
    """The filters (samples, channels out, channels in, kernel, kernel) that this seed draws.

    A pixel brighter by one than middle gray comes out as the filter, upside down and left to right.
    """
    samples, channels, height, width = shape
    row, column, half = height // 2, width // 2, kernel // 2
    filters = np.empty((samples, channels, channels, kernel, kernel))
    for channel in range(channels):
        images = torch.full(shape, 0.5)
        images[:, channel, row, column] += 1
        out = apply(images, seed, share=1.0, kernel=kernel, mix=False).numpy() - 0.5
        seen = out[:, :, row - half : row + half + 1, column - half : column + half + 1]
        filters[:, :, channel] = seen[..., ::-1, ::-1]
    return filters


def slow_filter(image, of_image):
    """One image (c, h, w) through its filter, with gray about its edges."""
    return np.array(
        [
            0.5 + sum(signal.correlate2d(plane - 0.5, kernel, mode="same") for plane, kernel in zip(image, of_channel))
            for of_channel in of_image
        ]
    )


@pytest.mark.parametrize(("channels", "kernel"), [(3, 3), (3, 5), (3, 1), (1, 3)])
def test_every_image_has_a_filter_of_its_own(channels, kernel):
    images = IMAGES[:, :channels]
    filters = filters_of(images.shape, kernel=kernel)
    out = apply(images, share=1.0, kernel=kernel, mix=False)
    for image, of_image, changed in zip(images.numpy(), filters, out.numpy()):
        np.testing.assert_allclose(changed, slow_filter(image, of_image), atol=1e-5)
    assert len({of_image.tobytes() for of_image in filters}) == len(images)


@pytest.mark.parametrize(("channels", "kernel"), [(3, 3), (1, 5)])
def test_weights_are_normal_of_a_variance_that_keeps_the_size(channels, kernel):
    weights = filters_of((40, channels, 7, 6), kernel=kernel).ravel()
    deviation = (channels * kernel**2) ** -0.5
    assert stats.kstest(weights, stats.norm(0, deviation).cdf).pvalue > 0.001


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_images_are_mixed_with_what_their_filter_makes_of_them(share):
    own = []
    for seed in range(60):
        filtered, mixed = (apply(IMAGES, seed, share=share, mix=mix).double() for mix in (False, True))
        for image, alone, both in zip(IMAGES.double(), filtered, mixed):
            if torch.equal(alone, image):
                assert torch.equal(both, image)
                continue
            way = alone - image
            own.append(1 - ((both - image) * way).sum().item() / way.square().sum().item())
            torch.testing.assert_close(both, own[-1] * image + (1 - own[-1]) * alone, atol=1e-5, rtol=0)
    assert stats.kstest(own, stats.uniform(0, 1).cdf).pvalue > 0.001


@pytest.mark.parametrize("share", [0.25, 0.7])
@pytest.mark.parametrize("mix", [False, True])
def test_a_share_of_the_images_is_filtered(share, mix):
    images = IMAGES[:1].expand(1500, -1, -1, -1)
    out = apply(images, share=share, mix=mix)
    changed = (out != images).flatten(1).any(1)
    assert changed.float().mean().item() == pytest.approx(share, abs=0.05)
    assert torch.equal(out[~changed], images[~changed])


def test_a_share_of_nothing_changes_nothing():
    assert torch.equal(apply(IMAGES, share=0.0), IMAGES)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"share": -0.1}, "--randconv.share takes a share from 0 to 1, not -0.1"),
        ({"share": float("nan")}, "--randconv.share takes a share from 0 to 1, not nan"),
        ({"kernel": 2}, "--randconv.kernel takes an odd number from 1, not 2"),
        ({"kernel": -1}, "--randconv.kernel takes an odd number from 1, not -1"),
    ],
)
def test_bad_settings_are_refused(options, says):
    with pytest.raises(BadRequest) as error:
        RandConvConfig(**options)
    assert str(error.value) == says
