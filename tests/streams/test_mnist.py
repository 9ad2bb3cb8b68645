import numpy as np
import pytest
import torch
from PIL import ImageColor

from droptop import BadRequest, make_stream
from droptop.data import mnist
from droptop.streams import STREAMS
from droptop.streams.colours import ColourConfig

from formats import write_mnist
from plans import parsed, plan

TRAIN, TEST = 4000, 2000
SHARED = "red,green,green,green,blue,blue,#102030,#102030,yellow,yellow"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(mnist, "PARTS", {"train": TRAIN, "t10k": TEST})
    write_mnist(tmp_path, TRAIN, TEST)
    yield tmp_path
    mnist._cached.cache_clear()


def test_split_mnist(root):
    stream = make_stream("split-mnist", root=root)
    assert stream.tasks == ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))
    assert (stream.train.x.shape, stream.train.x.dtype) == ((TRAIN, 3, 32, 32), torch.uint8)
    assert stream.train.y.tolist() == [row % 10 for row in range(TRAIN)]
    assert list(stream.tests) == ["clean"]
    image = stream.tests["clean"].x[7]
    assert (image == image[:1]).all()  # grey
    assert (image[0, 10:22, 10:22] == 255).all()
    assert image[0, 6, 2:22].tolist() == list(range(1, 255, 13))
    assert image.sum() == 3 * (144 * 255 + sum(range(1, 255, 13)))  # and nothing else, padding least of all


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("colours", [ColourConfig.colours, SHARED])
def test_colour_tells_the_digit_as_often_as_asked(root, correlation, colours):
    stream = make_stream("biased-mnist", root=root, correlation=correlation, colours=colours)
    near = 4 * (correlation * (1 - correlation) / TRAIN) ** 0.5
    assert stream.train.follows.float().mean().item() == pytest.approx(correlation, abs=near)
    assert stream.tests["biased"].follows.float().mean().item() == pytest.approx(correlation, abs=2 * near)
    different = len(set(colours.split(",")))
    assert stream.tests["random"].follows.float().mean().item() == pytest.approx(1 / different, abs=0.04)
    assert list(stream.tests) == ["biased", "plain", "random"]
    plain = stream.tests["plain"]
    assert (plain.follows, plain.shortcut) == (None, None)
    assert torch.equal(plain.x, make_stream("split-mnist", root=root).tests["clean"].x)


def test_coloured_pixels_are_those_of_the_shortcut_mask(root):
    stream = make_stream("biased-mnist", root=root, correlation=0.5, colours=SHARED)
    own = np.array([ImageColor.getrgb(name) for name in SHARED.split(",")])
    seen = set()
    for samples in (stream.train, stream.tests["random"]):
        colours = samples.x[:, :, 15, 15].numpy()  # within the square, at full brightness
        assert np.array_equal((colours == own[samples.y]).all(1), samples.follows.numpy())
        seen |= set(map(tuple, colours.tolist()))
        strokes = stream.tests["plain"].x[0, 0] > 0
        assert torch.equal(samples.shortcut, strokes.expand(len(samples), -1, -1))
        assert (samples.x.amax(1)[~samples.shortcut] == 0).all()
    assert seen == set(map(tuple, own.tolist()))
    grey = stream.tests["plain"].x[0, 0, 6, 2:22].numpy()  # dimmer pixels are dimmer in the same colour
    sample = stream.train.x[5]
    expected = np.rint(grey * (sample[:, 15, 15].numpy()[:, None] / 255))
    assert np.abs(sample[:, 6, 2:22].numpy() - expected).max() <= 1


def test_deterministic_in_the_seed(root):
    one, same, two = (make_stream("biased-mnist", seed, root=root) for seed in (1, 1, 2))
    assert torch.equal(one.train.x, same.train.x)
    assert torch.equal(one.tests["random"].x, same.tests["random"].x)
    assert not torch.equal(one.tests["random"].x, two.tests["random"].x)


@pytest.mark.parametrize(
    "colours",
    ["red", "red," * 9 + "#ff0000", "red," * 9 + "greenish", "red," * 9 + "#ff00000f", "red," * 10 + "blue", ""],
)
def test_bad_colours_are_refused(colours):
    with pytest.raises(BadRequest, match="--colours takes ten colours"):
        STREAMS["biased-mnist"].config(colours=colours)


def test_the_paper_s_settings_but_for_the_learning_rate():
    assert STREAMS["biased-mnist"].preset == {"width": 64, "stem": "3x3", "lr": 0.05, "memory": 200, "augment": "none"}


def test_colours_on_the_command_line(tmp_path):
    config = parsed("--data", "biased-mnist", "--colours", SHARED, "--correlation", "0.5")
    assert (config.stream.colours, config.stream.correlation) == (SHARED, 0.5)
    (tmp_path / "c.toml").write_text(plan(config).toml())
    assert parsed("--config", str(tmp_path / "c.toml")) == config
