"""Foregrounds by masks, boxes by masks or by a file, and backgrounds lent by other images."""

import numpy as np
import pytest
from PIL import Image

from droptop import BadRequest
from droptop.data.image_folders import read_part
from droptop.data.scenes import Scenes, foreground, read_boxes
from droptop.data.variants import VARIANTS

from pictures import mask_of, picture, save, write_tree

CLASSES = ("ant", "bee", "cat")


@pytest.fixture
def tree(tmp_path):
    return write_tree(tmp_path / "tree", {"train": dict.fromkeys(CLASSES, 2), "val": dict.fromkeys(CLASSES, 6)}, True)


def scenes(tree, part="val"):
    return Scenes(read_part(tree / "original" / part), tree, read_boxes(tree)).complete()


@pytest.mark.parametrize("variant", VARIANTS[4:])
def test_backgrounds_come_from_the_right_class(tree, variant):
    ours, lenders = scenes(tree), set()
    for row, label in enumerate(ours.part.labels):
        image, mask = ours.read(row)
        made = np.asarray(ours.make(variant, row))
        assert (made[mask] == image[mask]).all()
        lender = [
            donor
            for donor in range(len(ours.part))
            if (np.asarray(ours.make("only_bg_t", donor))[~mask] == made[~mask]).all()
        ]
        assert len(lender) == 1
        assert lender[0] != row
        lenders.add((label, ours.part.labels[lender[0]]))
    expected = {"mixed_same": {(0, 0), (1, 1), (2, 2)}, "mixed_next": {(0, 1), (1, 2), (2, 0)}}
    if variant in expected:
        assert lenders == expected[variant]
    else:
        assert len(lenders) >= 6


def test_lenders_do_not_depend_on_the_order_of_things(tree):
    ours = scenes(tree)
    before = {ours.part.stem(row): ours.part.stem(next(ours.donors("mixed_same", row))) for row in range(18)}
    again = scenes(tree)
    assert before == {again.part.stem(row): again.part.stem(next(again.donors("mixed_same", row))) for row in range(18)}
    assert len(set(before.values())) > 5


def test_images_that_are_all_foreground_lend_nothing(tree):
    for number in range(5):  # all but one of its class
        Image.new("1", (12, 12), 1).save(tree / f"masks/val/bee/{number}.png")
    ours = scenes(tree)
    last = ours.part.names.index("val/bee/5.png")
    for row in ours.part.rows_of[0]:
        assert (ours.background_for("mixed_next", row) == np.asarray(ours.make("only_bg_t", last))).all()


def test_the_only_image_of_a_class_lends_to_itself(tmp_path):
    ours = scenes(write_tree(tmp_path, {"val": {"a": 1, "b": 2}}, masks=True))
    assert list(ours.donors("mixed_same", 0)) == [0]


def test_boxes_in_a_file_are_preferred_to_those_of_masks(tmp_path):
    tree = write_tree(tmp_path, {"val": {"a": 1}}, masks=True, boxes=True)
    made = np.asarray(scenes(tree).make("only_bg_b", 0))
    assert not made[2:10, 1:9].any()  # [1, 2, 8, 9], both ends inside
    assert made.all(2).sum() == 144 - 64
    (tree / "boxes.json").write_text('{"boxes": {"val/a/0": [-3, -1, 13, 99]}}')
    assert not np.asarray(scenes(tree).make("only_bg_b", 0)).any()
    (tree / "boxes.json").write_text('{"boxes": {}}')
    assert not np.asarray(scenes(tree).make("only_bg_b", 0))[np.asarray(mask_of(1)) > 0].any()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"boxes": [1]}',
        '{"boxes": {"a": [1, 2, 3]}}',
        '{"boxes": {"a": [0, 0, 1.5, 2]}}',
        '{"boxes": {"a": [0, 0, "1", 2]}}',
        '{"boxes": {"a": [5, 0, 3, 2]}}',
        '{"boxes": {"a": null}}',
    ],
)
def test_impossible_boxes_are_refused(tree, text):
    (tree / "boxes.json").write_text(text)
    with pytest.raises(BadRequest, match=r"boxes\.json") as error:
        scenes(tree)
    assert "\n" not in str(error.value)


def test_impossible_masks_are_refused(tree):
    save(mask_of(1, (12, 11)), tree / "masks/val/ant/0.png")
    with pytest.raises(BadRequest, match=r"masks/val/ant/0\.png is 12 x 11 pixels, its image .* 12 x 12"):
        scenes(tree).make("only_fg", 0)
    save(picture(5), tree / "original/val/ant/3.jpg")
    with pytest.raises(BadRequest, match=r"val/ant/3\.jpg and val/ant/3\.png would share one mask"):
        scenes(tree)
    (tree / "original/val/ant/3.jpg").rename(tree / "original/val/ant/7.jpg")
    with pytest.raises(BadRequest, match=r"ant/7\.jpg has no mask: looked for .*masks/val/ant/7\.png"):
        scenes(tree)


@pytest.mark.parametrize("scale", [1, 255])
def test_every_value_but_0_of_a_mask_is_foreground(tree, scale):
    mask = np.asarray(mask_of(9)) // 255
    save(Image.fromarray(mask * np.uint8(scale)), tree / "masks/val/ant/0.png")
    assert (scenes(tree).read(0)[1] == (mask > 0)).all()


def square(mode, inside, outside, palette=None):
    """4 x 4, with a foreground of 2 x 2."""
    image = Image.new(mode, (4, 4), outside)
    image.paste(inside, (1, 1, 3, 3))
    if palette is not None:
        image.putpalette(palette)
    return image


@pytest.mark.parametrize(
    "mask",
    [
        square("L", 1, 0),
        square("1", 1, 0),
        square("I;16", 300, 0),
        square("RGB", (0, 0, 4), (0, 0, 0)),
        square("P", 1, 0, [0, 0, 0, 0, 0, 4]),
        square("P", 0, 1, [255, 255, 255, 0, 0, 0]),
        square("P", 1, 0, [9, 9, 9, 0, 0, 4]),
        square("RGBA", (0, 0, 0, 255), (0, 0, 0, 0)),
        square("RGBA", (1, 0, 0, 255), (0, 0, 0, 255)),
        square("LA", (9, 200), (255, 0)),
    ],
    ids=lambda mask: mask.mode,
)
def test_masks_of_every_mode_are_foreground_where_not_0(mask, tmp_path):
    mask.save(tmp_path / "mask.png")
    with Image.open(tmp_path / "mask.png") as file:
        found = foreground(file)
    assert found.dtype == bool
    assert np.argwhere(found).tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
