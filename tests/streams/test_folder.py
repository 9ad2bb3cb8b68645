import numpy as np
import pytest
import torch

from droptop import BadRequest, Samples, make_learner, make_stream
from droptop.cli import main
from droptop.data import folder
from droptop.data.image_store import StoredImages
from droptop.data.variants import VARIANTS
from droptop.streams.folder import PRESET

from pictures import picture, pixels, save, write_tree
from plans import parsed
from toys import feed

SMALL = {"image_size": 12, "batch": 2}


@pytest.fixture
def plain_tree(tmp_path):
    return write_tree(tmp_path / "tree", {"train": dict.fromkeys("abcde", 4), "test": dict.fromkeys("abcde", 2)})


def test_a_stream_of_ones_own_images(plain_tree):
    stream = make_stream(f"folder:{plain_tree}", **SMALL)
    assert (stream.spec.shape, stream.spec.classes) == ((3, 12, 12), tuple("abcde"))
    assert stream.tasks == ((0, 1), (2, 3), (4,))
    assert list(stream.tests) == ["test"]
    assert (len(stream.train), len(stream.tests["test"]), len(stream)) == (20, 10, 10)
    assert np.array_equal(stream.train.x[4].permute(1, 2, 0), pixels(plain_tree / "train/b/0.png"))
    assert make_stream(f"folder:{plain_tree}", **SMALL, split="e,a/b").tasks == ((4, 0), (1,))
    assert make_stream(f"folder:{plain_tree}", batch=2).spec.shape == (3, 64, 64)


def test_a_learner_knows_how_to_learn_from_it(plain_tree):
    stream = make_stream(f"folder:{plain_tree}", **SMALL)
    learner = make_learner("er", stream, width=4, stem="3x3")
    assert (learner.config.lr, learner.config.memory, learner.config.augment) == (0.1, 500, PRESET["augment"])
    feed(learner, [(batch.x, batch.y, batch.task) for batch in stream.batches()][:2])


def test_masks_make_test_sets(tmp_path):
    tree = write_tree(tmp_path / "tree", {"train": {"a": 2, "b": 2}, "test": {"a": 2, "b": 2}}, masks=True)
    for part in ("train", "test"):
        (tree / "original" / part).rename(tree / part)
    (tree / "original").rmdir()
    stream = make_stream(f"folder:{tree}", **SMALL)
    assert tuple(stream.tests) == ("original", *VARIANTS)
    assert stream.cue == {  # what shows no foreground, or no background as it was, says nothing of the cue
        "original": True,
        "mixed_same": True,
        "mixed_rand": False,
        "mixed_next": False,
        "only_fg": False,
    }
    original, front, rest = (stream.tests[name].x for name in ("original", "only_fg", "no_fg"))
    assert torch.equal(front + rest, original)
    assert folder.check(str(tree)).splitlines() == [
        "training: 4 images decode (a 2, b 2)",
        "test: 4 images decode (a 2, b 2)",
        "test masks: 4 masks fit their images",
    ]
    (tree / "masks/test/b/1.png").unlink()
    with pytest.raises(BadRequest, match=r"test/b/1\.png has no mask"):
        make_stream(f"folder:{tree}", **SMALL)


def test_further_test_sets(plain_tree):
    """The same classes without what may give them away, say."""
    write_tree(plain_tree, {"test-no-logo": dict.fromkeys("abcde", 3), "test-drawn": dict.fromkeys("abcde", 1)})
    stream = make_stream(f"folder:{plain_tree}", **SMALL)
    assert {name: len(test) for name, test in stream.tests.items()} == {"test": 10, "drawn": 5, "no-logo": 15}
    assert np.array_equal(stream.tests["no-logo"].x[3].permute(1, 2, 0), pixels(plain_tree / "test-no-logo/b/0.png"))
    assert stream.tests["no-logo"].y.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    assert folder.check(str(plain_tree)).splitlines()[2:] == [
        "drawn: 5 images decode (a 1, b 1, c 1, d 1, e 1)",
        "no-logo: 15 images decode (a 3, b 3, c 3, d 3, e 3)",
    ]
    assert folder.where(str(plain_tree)).endswith("20 + 10 + 5 + 15 images of 5 classes")
    (plain_tree / "test-drawn/e").rename(plain_tree / "test-drawn/f")
    with pytest.raises(BadRequest, match=r"test-drawn have different classes: e only in .*train; f only in"):
        make_stream(f"folder:{plain_tree}", **SMALL)
    (plain_tree / "test-drawn/f").rename(plain_tree / "test-drawn/e")
    (plain_tree / "test-drawn").rename(plain_tree / "test-test")
    with pytest.raises(BadRequest, match="test-test needs another name: test is taken"):
        make_stream(f"folder:{plain_tree}", **SMALL)


def test_training_images_take_the_memory_first(plain_tree):
    sizes = {"image_size": 128, "batch": 2}  # 0.94 MiB to train on, 0.47 to test on
    kinds = [
        tuple(type(part) for part in (stream.train, stream.tests["test"]))
        for stream in (make_stream(f"folder:{plain_tree}", in_memory_mb=mb, **sizes) for mb in (0, 1, 2))
    ]
    assert kinds == [(StoredImages, StoredImages), (Samples, StoredImages), (Samples, Samples)]
    memory, disk = (make_stream(f"folder:{plain_tree}", in_memory_mb=mb, **sizes) for mb in (2, 0))
    for ours, theirs in zip(memory, disk, strict=True):
        assert torch.equal(ours.x, theirs.x)
        assert torch.equal(ours.y, theirs.y)


def test_options_of_the_stream_are_used(plain_tree):
    flags = ["--data", f"folder:{plain_tree}"]
    config = parsed(*flags, "--image-size", "32", "--in-memory-mb", "7", "--tasks", "5").stream
    assert (config.image_size, config.in_memory_mb, config.tasks) == (32, 7, 5)
    for option, value in (("--image-size", "2"), ("--image-size", "4000"), ("--in-memory-mb", "-1")):
        with pytest.raises(BadRequest, match=option):
            parsed(*flags, option, value)


def test_check_counts_what_is_wrong(plain_tree):
    for name in ("a/1", "c/0", "c/3"):
        (plain_tree / f"train/{name}.png").write_bytes(b"not an image")
    with pytest.raises(BadRequest, match=r"train/a/1\.png does not decode: .*; and 2 more files like it") as error:
        folder.check(str(plain_tree))
    assert "\n" not in str(error.value)


def test_a_tilde_is_the_home_folder(plain_tree, monkeypatch):
    monkeypatch.setenv("HOME", str(plain_tree.parent))
    assert len(make_stream("folder:~/tree", **SMALL).train) == 20


def test_resume_refuses_other_images(plain_tree, tmp_path, monkeypatch, capsys):
    run, config = tmp_path / "run", tmp_path / "run/config.toml"
    monkeypatch.chdir(tmp_path)
    assert (
        main(
            [
                "run",
                "--data",
                "folder:tree",
                "--debias",
                "none",
                "--image-size",
                "12",
                "--batch",
                "2",
                "--width",
                "4",
                "--maps",
                "0",
                "--seeds",
                "1",
                "--out",
                "run",
            ]
        )
        == 0
    )
    assert f'data = "folder:{plain_tree}"' in config.read_text()  # from whatever folder it goes on
    before = config.read_bytes()
    plain_tree.rename(tmp_path / "gone")
    assert main(["resume", "run"]) == 0  # there is nothing to run
    assert main(["resume", "run", "--seeds", "2"]) == 2
    assert "tree is not an existing folder" in capsys.readouterr().err
    (tmp_path / "gone").rename(plain_tree)
    (plain_tree / "train/a/0.png").unlink()
    assert main(["resume", "run", "--seeds", "2"]) == 2
    assert f"--data folder:{plain_tree} is not what run began with" in capsys.readouterr().err
    assert (config.read_bytes(), (run / "seed-1").exists()) == (before, False)


def test_impossible_requests_are_refused(tmp_path):
    with pytest.raises(BadRequest, match="nowhere is not an existing folder"):
        make_stream(f"folder:{tmp_path / 'nowhere'}")
    save(picture(1), tmp_path / "train/a/1.png")
    with pytest.raises(BadRequest, match="train/a holds one image"):
        make_stream(f"folder:{tmp_path}")
    for number in (2, 3):
        save(picture(number), tmp_path / f"train/a/{number}.png")
    for use in (make_stream, lambda name: folder.check(name.removeprefix("folder:"))):
        with pytest.raises(BadRequest, match="train holds one class, a: a stream has two at least"):
            use(f"folder:{tmp_path}")
    with pytest.raises(BadRequest, match="folder: is not the whole name: folder:PATH"):
        make_stream("folder:")


def test_a_folder_that_is_named_as_a_stream_is_told_how(tmp_path):
    with pytest.raises(BadRequest, match=f"there is no stream {tmp_path}; did you mean folder:{tmp_path}"):
        make_stream(str(tmp_path))
