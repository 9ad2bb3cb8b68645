import re
import shutil

import numpy as np
import pytest
import torch

from droptop import BadRequest, make_stream
from droptop.data import imagenet9
from droptop.data.imagenet9 import FOLDERS, IMAGENET9, TESTS, TINY
from droptop.data.variant_folders import write_variants
from droptop.data.variants import VARIANTS
from droptop.errors import Damaged
from droptop.runs.config import configure

from pictures import pixels, write_tree

SMALL = {"image_size": 12, "batch": 2}
PARTS = {"train": dict.fromkeys(FOLDERS, 2), "val": dict.fromkeys(FOLDERS, 2)}


@pytest.fixture
def root(tmp_path):
    write_tree(tmp_path / "data/tiny-in9", PARTS, masks=True, boxes=True)
    return tmp_path / "data"


def tiny(root, variant="", **options):
    return make_stream(f"split-tiny-imagenet9{variant}", root=root, **SMALL | options)


def test_four_tasks_without_primates(root):
    stream = tiny(root)
    assert [tuple(stream.spec.classes[label] for label in task) for task in stream.tasks] == [
        ("dog", "bird"),
        ("vehicle", "reptile"),
        ("carnivore", "insect"),
        ("instrument", "fish"),
    ]
    assert [test for test, has_it in stream.cue.items() if not has_it] == ["mixed_rand", "mixed_next", "only_fg"]
    assert next(iter(tiny(root, ":mixed_same").cue.items())) == ("mixed_same", True)
    assert tiny(root, ":only_fg").cue == {"only_fg": True}  # no background to learn from, none to lose
    assert (len(stream.train), stream.train.y.tolist()) == (16, [label for label in range(8) for _ in range(2)])
    home = root / "tiny-in9/original"
    for row, name in ((0, "train/00_dog/0"), (13, "train/06_instrument/1"), (14, "train/08_fish/0")):
        assert np.array_equal(stream.train.x[row].permute(1, 2, 0), pixels(home / f"{name}.png"))
    assert np.array_equal(stream.tests["original"].x[15].permute(1, 2, 0), pixels(home / "val/08_fish/1.png"))


def test_variants_are_made_from_masks_or_read_from_folders(root, tmp_path):
    made = tiny(root).tests
    assert tuple(made) == TESTS[:-1]
    write_variants(root / "tiny-in9", tmp_path / "out")
    for variant in VARIANTS:
        shutil.move(tmp_path / "out" / variant, root / "tiny-in9" / variant)
    shutil.rmtree(root / "tiny-in9/masks")
    shutil.copytree(root / "tiny-in9/original/val", root / "tiny-in9/stylized/val")
    read = tiny(root).tests
    assert tuple(read) == TESTS
    for variant in VARIANTS:
        assert torch.equal(read[variant].x, made[variant].x)
        assert torch.equal(read[variant].y, made[variant].y)


def test_variants_without_masks_are_left_out(root):
    shutil.rmtree(root / "tiny-in9/masks/val")
    assert list(tiny(root).tests) == ["original"]


def test_primates_lend_their_backgrounds(root):
    scenes = TINY.scenes(root, "val")
    instrument = FOLDERS.index("06_instrument")
    donors = {next(scenes.donors("mixed_next", row)) for row in scenes.part.rows_of[instrument]}
    assert {scenes.part.labels[donor] for donor in donors} == {FOLDERS.index("07_primate")}


def test_a_variant_is_a_training_stream_too(root):
    plain, front = tiny(root), tiny(root, ":only_fg")
    assert front.name == "split-tiny-imagenet9:only_fg"
    assert list(front.tests) == list(plain.tests)
    shown = (front.train.x > 0).any(1)
    assert 0.1 < shown.float().mean() < 0.5
    assert torch.equal(front.train.x, plain.train.x * shown[:, None])
    with pytest.raises(BadRequest, match=r"no variant backwards; there are original, .*, stylized$"):
        tiny(root, ":backwards")
    with pytest.raises(BadRequest, match=r"needs images to train on: a folder stylized/train$"):
        tiny(root, ":stylized")
    shutil.rmtree(root / "tiny-in9/masks/train")
    with pytest.raises(BadRequest, match="needs images to train on: a folder no_fg/train or masks/train"):
        tiny(root, ":no_fg")


@pytest.mark.parametrize("home", ["imagenet9", "bg_challenge", "", "imagenet9/bg_challenge"])
def test_data_is_found_in_the_usual_folders(tmp_path, home):
    write_tree(tmp_path / home / "original", PARTS, size=(130, 128))
    stream = make_stream("split-imagenet9", root=tmp_path, **SMALL)
    assert (len(stream.train), list(stream.tests)) == (16, ["original"])


def test_the_cleaned_test_images_come_first(tmp_path):
    write_tree(tmp_path / "imagenet9/original", PARTS, size=(128, 128))
    write_tree(tmp_path / "bg_challenge/original", {"val": dict.fromkeys(FOLDERS, 1)}, size=(128, 128))
    write_tree(tmp_path / "bg_challenge/only_fg", {"val": dict.fromkeys(FOLDERS, 1)}, size=(128, 128))
    stream = make_stream("split-imagenet9", root=tmp_path, **SMALL)
    assert {name: len(test) for name, test in stream.tests.items()} == {"original": 8, "only_fg": 8}


def test_small_images_are_not_called_imagenet9(root):
    with pytest.raises(BadRequest, match=r"^\S+ is 12 x 12 pixels, too small for split-imagenet9: .*tiny"):
        make_stream("split-imagenet9", root=root / "tiny-in9", **SMALL)


def test_presets_fit_the_image_size():
    full, small = configure("split-imagenet9"), configure("split-tiny-imagenet9:only_fg")
    assert (full.stream.image_size, full.net.stem, full.stream.tasks) == (224, "7x7/2-pool", 4)
    assert (small.stream.image_size, small.net.stem, small.stream.tasks) == (64, "7x7/2", 4)
    assert full.learner.lr == small.learner.lr == 0.1


def test_missing_data_tells_how_to_get_it(tmp_path):
    with pytest.raises(BadRequest, match="MadryLab/backgrounds_challenge") as error:
        make_stream("split-imagenet9", root=tmp_path)
    assert f"looked for {tmp_path / 'imagenet9/original/train'};" in str(error.value)
    with pytest.raises(BadRequest, match=r"split-tiny-imagenet9 is not on this disk: looked for .*tiny-in9/original"):
        tiny(tmp_path)


def test_wrong_classes_are_named(root):
    (root / "tiny-in9/original/val/03_reptile").rename(root / "tiny-in9/original/val/03_snake")
    with pytest.raises(BadRequest, match="val lacks 03_reptile"):
        tiny(root)
    write_tree(root / "tiny-in9/original", {"val": {"03_reptile": 1}})
    with pytest.raises(BadRequest, match="val holds 03_snake"):
        tiny(root)


def test_check_counts_images_of_every_class(root):
    said = TINY.check(root).splitlines()
    assert said[0].startswith("original/train: 18 images decode (00_dog 2, 01_bird 2,")
    assert said[1] == "masks/train: 18 masks fit their images"
    assert len(said) == 4
    path = root / "tiny-in9/masks/val/04_carnivore/1.png"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(BadRequest, match=r"masks/val/04_carnivore/1\.png does not decode"):
        TINY.check(root)
    home = root / "tiny-in9"
    for name in ("original/train/01_bird/0.png", "original/val/00_dog/0.png", "masks/train/08_fish/1.png"):
        (home / name).write_bytes(b"not an image")
    (home / "masks/val/02_vehicle/0.png").unlink()
    with pytest.raises(Damaged) as error:
        TINY.check(root)
    named = [re.match(rf"{home}/(\S+) (does not decode|has no mask)", reason) for reason in error.value.reasons]
    assert [(found[1], found[2]) for found in named] == [
        ("original/train/01_bird/0.png", "does not decode"),
        ("masks/train/08_fish/1.png", "does not decode"),
        ("original/val/00_dog/0.png", "does not decode"),
        ("original/val/02_vehicle/0.png", "has no mask"),
        ("masks/val/04_carnivore/1.png", "does not decode"),
    ]
    with pytest.raises(BadRequest, match="is not on this disk"):
        IMAGENET9.check(root)


def test_naming_a_stream_reads_nothing(root, monkeypatch):
    monkeypatch.setattr(imagenet9, "read_part", None)
    configure("split-tiny-imagenet9", root=root)
