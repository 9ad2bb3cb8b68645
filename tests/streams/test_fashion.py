import gc
import hashlib

import pytest
import torch

from droptop import make_stream
from droptop.streams.augment import crop_flip
from droptop.streams.cues.appearance import palette
from droptop.streams.shortcuts import CUES

TESTS = {
    "fashion": ["clean"],
    "fashion-sticker": ["biased", "removed", "random"],
    "fashion-background": ["biased", "removed", "random"],
    "fashion-colour": ["biased", "plain", "random"],
}


# The first digits of SHA-256 of what these streams held before their cues became those of any stream. What is measured
# of them is compared with what was measured then.
DIGESTS = {
    ("fashion-sticker", 0): ("e6a676dcfb05dc3f", "75080272406d50b3"),
    ("fashion-sticker", 3): ("4236cce3db01433e", "2ef744f33667080b"),
    ("fashion-colour", 0): ("abe1432d44af5b35", "f06ed11e56d2d183"),
    ("fashion-colour", 3): ("d96b00c1a8c73a72", "98cc06ac463abf12"),
}


@pytest.mark.parametrize(("name", "seed"), DIGESTS)
def test_the_bytes_stay(name, seed):
    stream = make_stream(name, seed)
    for samples, digest in zip((stream.train, stream.tests["random"]), DIGESTS[name, seed]):
        parts = (samples.x, samples.y, samples.follows, samples.shortcut)
        assert hashlib.sha256(b"".join(part.numpy().tobytes() for part in parts)).hexdigest()[:16] == digest


@pytest.mark.parametrize("name", TESTS)
def test_shapes_and_balance(name):
    stream = make_stream(name)
    assert (stream.train.x.shape, stream.train.x.dtype) == ((12000, 3, 32, 32), torch.uint8)
    assert stream.train.y.bincount().tolist() == [1200] * 10
    assert list(stream.tests) == TESTS[name]
    assert all(test.y.bincount().tolist() == [200] * 10 for test in stream.tests.values())
    assert len(stream) == 375


@pytest.mark.parametrize("name", TESTS)
def test_deterministic_in_the_seed(name):
    def digest(seed):
        stream = make_stream(name, seed)
        return [
            hashlib.sha256(x.numpy().tobytes()).hexdigest()
            for x in (stream.train.x, *(test.x for test in stream.tests.values()), stream.order[0])
        ]

    assert digest(1) == digest(1)
    assert digest(1)[-1] != digest(2)[-1]


def test_images_are_the_official_ones():
    """The subset's first training image of class 9 is the official file's first image, an ankle boot."""
    boot = make_stream("fashion").train.x[9 * 1200, 0]
    assert (boot[:2] == 0).all()  # padded
    assert boot[2:-2, 2:-2].sum().item() == 76247


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95, 1.0])
def test_sticker_tells_the_class_as_often_as_asked(correlation):
    stream = make_stream("fashion-sticker", correlation=correlation)
    follows = stream.train.follows.float().mean().item()
    assert follows == pytest.approx(correlation, abs=4 * (correlation * (1 - correlation) / 12000) ** 0.5)
    assert stream.tests["biased"].follows.float().mean().item() == pytest.approx(correlation, abs=0.03)
    assert stream.tests["random"].follows.float().mean().item() == pytest.approx(1 / CUES, abs=0.03)
    assert stream.tests["removed"].follows is None


def test_sticker_pixels_are_those_of_the_shortcut_mask():
    stream = make_stream("fashion-sticker", sticker_size=4)
    plain, samples = stream.tests["removed"], stream.tests["random"]
    pixels = samples.shortcut
    assert (pixels.sum((1, 2)) == 16).all()
    outside = ~pixels[:, None].expand_as(samples.x)
    assert torch.equal(samples.x[outside], plain.x[outside])
    colours = samples.x.permute(0, 2, 3, 1)[pixels].view(-1, 16, 3)
    assert (colours == colours[:, :1]).all()
    own = (colours[:, 0] == palette()[samples.y]).all(1)
    assert torch.equal(own, samples.follows)
    edge = pixels[:, [0, -1]].flatten(1).any(1) | pixels[:, :, [0, -1]].flatten(1).any(1)
    assert edge.all()
    assert len({tuple(p.nonzero()[0].tolist()) for p in pixels}) > 50  # at many places


def test_brightness_dims_garments_and_not_stickers():
    dim, bright = (make_stream("fashion-sticker", garment_brightness=b) for b in (0.25, 1.0))
    assert torch.equal(dim.tests["removed"].x, (bright.tests["removed"].x * 0.25).to(torch.uint8))
    assert dim.train.x.amax((1, 2, 3)).min() == 255


def test_background_lies_behind_the_garment():
    stream = make_stream("fashion-background")
    plain, samples = stream.tests["removed"], stream.tests["biased"]
    garment = ~samples.shortcut[:, None].expand_as(samples.x)
    assert torch.equal(samples.x[garment], plain.x[garment])
    assert (plain.x[~garment] <= 8).all()
    background = samples.x.float().masked_fill(garment, torch.nan)
    assert (background.flatten(2).nanmean(2).amax(1) > 30).all()


def test_colour_fills_the_garment_and_nothing_else():
    names = ["red", "lime", "lime", "lime"] + ["red"] * 6  # 0 red, then 1, 2 and 3 green, as in the paper's appendix B
    stream = make_stream("fashion-colour", correlation=1.0, colours=",".join(names), split="0,1/2,3")
    grey, samples = stream.tests["plain"], stream.tests["biased"]
    assert (grey.x == make_stream("fashion").tests["clean"].x).all()
    assert samples.follows.all()
    bands = {"red": 0, "lime": 1}
    for label, name in enumerate(names):
        own = samples.x[samples.y == label]
        lit = own[:, bands[name]]
        assert torch.equal(lit, grey.x[grey.y == label, 0])  # as bright as it was
        assert own.sum() == lit.sum()  # and dark in the other bands


def test_crop_flip_against_a_slow_loop():
    x = torch.randint(0, 256, (40, 3, 6, 5), dtype=torch.uint8)
    augmented = crop_flip(x, torch.Generator().manual_seed(0), padding=2)
    padded = torch.nn.functional.pad(x, (2, 2, 2, 2))
    seen = set()
    for image, source in zip(augmented, padded):
        candidates = {
            (i, j, mirror): (crop.flip(-1) if mirror else crop)
            for i in range(5)
            for j in range(5)
            for crop in [source[:, i : i + 6, j : j + 5]]
            for mirror in (False, True)
        }
        found = [key for key, crop in candidates.items() if torch.equal(crop, image)]
        assert found
        seen.add(found[0])
    assert len(seen) > 20
    assert {mirror for _, _, mirror in seen} == {False, True}


@pytest.mark.parametrize("name", ["fashion-sticker", "fashion-background"])
def test_streams_that_are_the_same_share_their_images_while_they_are_used(name):
    stream, same, other = (make_stream(name, seed=seed) for seed in (0, 0, 1))
    weaker = make_stream(name, seed=0, correlation=0.5)
    for part in ("biased", "removed", "random"):
        assert same.tests[part] is stream.tests[part]
    assert same.train is stream.train
    assert other.tests["removed"] is stream.tests["removed"]
    for differs in (other, weaker):
        assert not torch.equal(differs.train.x, stream.train.x)
    before = stream.train.x.clone()
    del stream, same
    gc.collect()
    again = make_stream(name, seed=0)
    assert torch.equal(again.train.x, before)
