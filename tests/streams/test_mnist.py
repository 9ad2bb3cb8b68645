import numpy as np
import pytest
import torch
from PIL import ImageColor

from droptop import BadRequest, make_stream
from droptop.cli.run_flags import parse
from droptop.data import mnist
from droptop.errors import Damaged
from droptop.runs.config import to_toml
from droptop.streams import STREAMS
from droptop.streams.colours import ColourConfig

from formats import idx_bytes, write_mnist

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


def test_compressed_files_give_the_same(root, tmp_path_factory):
    other = tmp_path_factory.mktemp("compressed")
    write_mnist(other, TRAIN, TEST, compressed=True)
    plain, compressed = (make_stream("split-mnist", root=folder) for folder in (root, other))
    assert torch.equal(plain.train.x, compressed.train.x)
    assert torch.equal(plain.tests["clean"].y, compressed.tests["clean"].y)


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


def test_colours_are_where_they_say_and_what_they_say(root):
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
def test_refuses_colours(colours):
    with pytest.raises(BadRequest, match="--colours takes ten colours"):
        STREAMS["biased-mnist"].config(colours=colours)


def test_the_paper_s_settings_but_for_the_learning_rate():
    assert STREAMS["biased-mnist"].preset == {"width": 64, "stem": "3x3", "lr": 0.05, "memory": 200, "augment": "none"}


@pytest.mark.parametrize(
    ("file", "data", "reason"),
    [
        (
            "train-images-idx3-ubyte",
            idx_bytes(np.zeros((TRAIN - 1, 28, 28), np.uint8)),
            "3,999 x 28 x 28 numbers instead",
        ),
        ("t10k-labels-idx1-ubyte", idx_bytes(np.zeros(TEST + 1, np.uint8)), "2,001 numbers instead of 2,000"),
        ("train-labels-idx1-ubyte", idx_bytes((np.arange(TRAIN) % 11).astype(np.uint8)), "image 10 is 10 instead of"),
        ("t10k-labels-idx1-ubyte", idx_bytes((np.arange(TEST) % 9).astype(np.uint8)), "no image of class 9"),
        ("t10k-labels-idx1-ubyte", b"<html>", "no idx file"),
    ],
)
def test_refuses(root, file, data, reason):
    (root / "MNIST/raw" / file).write_bytes(data)
    with pytest.raises(BadRequest, match=reason) as error:
        make_stream("split-mnist", root=root)
    assert file in str(error.value)


def test_says_what_is_missing(root, tmp_path_factory):
    (root / "MNIST/raw/t10k-images-idx3-ubyte").unlink()
    with pytest.raises(BadRequest, match=r"t10k-images-idx3-ubyte is missing, and so is t10k-images-idx3-ubyte.gz"):
        make_stream("split-mnist", root=root)
    empty = tmp_path_factory.mktemp("empty")
    with pytest.raises(BadRequest, match=f"{empty}/MNIST/raw; `droptop data download mnist --root {empty}`"):
        make_stream("biased-mnist", root=empty)


def test_check(root):
    seen = []
    assert mnist.check(root, lambda *step: seen.append(step)) == "4,000 + 2,000 images of 10 classes, 28 x 28"
    assert [done for done, _, _ in seen] == [0, 1, 2, 3, 4]
    assert {total for _, total, _ in seen} == {4}
    for name in ("train-images-idx3", "t10k-labels-idx1"):
        (root / f"MNIST/raw/{name}-ubyte").write_bytes(b"no idx file")
    (root / "MNIST/raw/train-labels-idx1-ubyte").unlink()
    with pytest.raises(Damaged) as error:
        mnist.check(root, lambda *step: None)
    assert [reason.partition("-ubyte ")[0].rpartition("/")[2] for reason in error.value.reasons] == [
        "train-images-idx3",
        "train-labels-idx1",
        "t10k-labels-idx1",
    ]


def test_colours_on_the_command_line(tmp_path):
    config, _ = parse("run", ["--data", "biased-mnist", "--colours", SHARED, "--correlation", "0.5", "--out", "x"])
    assert (config.stream.colours, config.stream.correlation) == (SHARED, 0.5)
    (tmp_path / "c.toml").write_text(to_toml(config, "run"))
    assert parse("run", ["--config", str(tmp_path / "c.toml"), "--out", "x"])[0] == config
