"""Variants as folders of images."""

import numpy as np
import pytest

from droptop import BadRequest
from droptop.data.image_folders import read_part
from droptop.data.scenes import Scenes, read_boxes
from droptop.data.variant_folders import write_variants
from droptop.data.variants import VARIANTS

from pictures import mask_of, picture, pixels, save, write_tree

CLASSES = ("ant", "bee", "cat")


@pytest.fixture
def tree(tmp_path):
    return write_tree(tmp_path / "tree", {"train": dict.fromkeys(CLASSES, 2), "val": dict.fromkeys(CLASSES, 6)}, True)


def scenes(tree, part="val"):
    return Scenes(read_part(tree / "original" / part), tree, read_boxes(tree)).complete()


def test_written_folders_read_back_as_the_variants(tree, tmp_path):
    told = []
    count = write_variants(tree, tmp_path / "out", progress=lambda *report: told.append(report))
    assert count == len(VARIANTS) * 24 == len([*(tmp_path / "out").rglob("*.png")])
    assert not [*(tmp_path / "out").rglob("*.part")]
    assert told[0] == (6, 6, "only_fg/train")
    for part in ("train", "val"):
        ours = scenes(tree, part)
        for variant in VARIANTS:
            for row in range(len(ours.part)):
                written = pixels(tmp_path / "out" / variant / ours.part.names[row])
                assert (written == np.asarray(ours.make(variant, row))).all()
    write_variants(tree, tmp_path / "again", ["mixed_rand"])
    for path in (tmp_path / "again").rglob("*.png"):
        assert path.read_bytes() == (tmp_path / "out" / path.relative_to(tmp_path / "again")).read_bytes()


def test_images_of_many_sizes_are_resized(tmp_path):
    for number, size in enumerate([(20, 10), (9, 30), (16, 16)]):
        save(picture(number, size), tmp_path / f"in/val/a/{number}.png")
        save(mask_of(number, size), tmp_path / f"in/masks/val/a/{number}.png")
    write_variants(tmp_path / "in", tmp_path / "out", ["mixed_same"])
    for number, size in enumerate([(20, 10), (9, 30), (16, 16)]):
        assert pixels(tmp_path / f"out/mixed_same/val/a/{number}.png").shape == (size[1], size[0], 3)


def test_a_folder_that_cannot_be_written_is_refused(tree, tmp_path):
    with pytest.raises(BadRequest, match="stylized is no variant"):
        write_variants(tree, tmp_path / "out", ["stylized"])
    with pytest.raises(BadRequest, match="tree holds something already"):
        write_variants(tree, tree)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadRequest, match="empty holds no images"):
        write_variants(tmp_path / "empty", tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadRequest, match="Not a directory"):
        write_variants(tree, tmp_path / "file/out")
