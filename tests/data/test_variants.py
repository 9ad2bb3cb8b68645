import numpy as np
import pytest
from PIL import Image

from droptop import BadRequest
from droptop.data.image_folders import read_part
from droptop.data.scenes import Scenes, foreground, read_boxes
from droptop.data.variant_folders import write_variants
from droptop.data.variants import VARIANTS, Box, box_of, mixed, no_fg, only_bg_b, only_bg_t, only_fg

from pictures import mask_of, picture, pixels, save, write_tree

IMAGE = np.asarray(picture(1, (9, 7)))  # 9 wide, 7 high
MASK = np.asarray(mask_of(1, (9, 7))) > 0
CLASSES = ("ant", "bee", "cat")


# -- One image --------------------------------------------------------------------------------------------------------


def test_boxes_against_a_slow_loop():
    for seed in range(20):
        mask = np.random.default_rng(seed).random((6, 8)) < 0.06
        places = [(y, x) for y in range(6) for x in range(8) if mask[y, x]]
        if places:
            rows, columns = zip(*places)
            assert box_of(mask) == (min(columns), min(rows), max(columns) + 1, max(rows) + 1)
    assert box_of(np.zeros((3, 4), bool)) == (0, 0, 0, 0)
    assert box_of(np.ones((3, 4), bool)) == (0, 0, 4, 3)
    assert Box(1, 2, 30, 40).within(5, 6) == (1, 2, 6, 5)


def test_foreground_and_the_rest_make_the_image():
    front, rest = only_fg(IMAGE, MASK), no_fg(IMAGE, MASK)
    assert (front[MASK] == IMAGE[MASK]).all()
    assert not front[~MASK].any()
    assert not rest[MASK].any()
    assert (front + rest == IMAGE).all()


def test_black_box():
    box = Box(2, 1, 6, 5)
    made = only_bg_b(IMAGE, box)
    inside = np.zeros((7, 9), bool)
    inside[1:5, 2:6] = True
    assert not made[inside].any()
    assert (made[~inside] == IMAGE[~inside]).all()


@pytest.mark.parametrize(
    ("box", "strip"),
    [
        (Box(2, 1, 6, 5), (6, 0, 9, 7)),  # right of it: 3 columns of 7, against 2 rows of 9
        (Box(4, 1, 8, 6), (0, 0, 4, 7)),  # left
        (Box(1, 4, 8, 7), (0, 0, 9, 4)),  # above
        (Box(1, 1, 9, 4), (0, 4, 9, 7)),  # below
        (Box(0, 0, 9, 6), (0, 6, 9, 7)),  # a row is left
    ],
)
def test_tiled_box_against_a_slow_loop(box, strip):
    made = only_bg_t(IMAGE, box)
    left, top, right, bottom = strip
    for y in range(7):
        for x in range(9):
            inside = box.left <= x < box.right and box.top <= y < box.bottom
            source = (top + y % (bottom - top), left + x % (right - left)) if inside else (y, x)
            assert (made[y, x] == IMAGE[source]).all()
    background = {tuple(colour) for colour in only_bg_b(IMAGE, box).reshape(-1, 3)}
    assert {tuple(colour) for colour in made.reshape(-1, 3)} <= background  # nothing of what was in the box


def test_extreme_boxes():
    assert not only_bg_t(IMAGE, Box(0, 0, 9, 7)).any()  # no background to fill it with
    assert (only_bg_t(IMAGE, Box(0, 0, 0, 0)) == IMAGE).all()
    assert (only_bg_b(IMAGE, Box(0, 0, 0, 0)) == IMAGE).all()


def test_mixed_takes_each_pixel_from_one_of_the_two():
    other = np.asarray(picture(2, (9, 7)))
    made = mixed(IMAGE, MASK, other)
    assert (made[MASK] == IMAGE[MASK]).all()
    assert (made[~MASK] == other[~MASK]).all()


# -- A tree of them ---------------------------------------------------------------------------------------------------


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


def test_noted_boxes_win(tmp_path):
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
def test_odd_boxes_are_refused(tree, text):
    (tree / "boxes.json").write_text(text)
    with pytest.raises(BadRequest, match=r"boxes\.json") as error:
        scenes(tree)
    assert "\n" not in str(error.value)


def test_odd_masks_are_refused(tree):
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
def test_anything_but_0_is_foreground(tree, scale):
    mask = np.asarray(mask_of(9)) // 255
    save(Image.fromarray(mask * np.uint8(scale)), tree / "masks/val/ant/0.png")
    assert (scenes(tree).read(0)[1] == (mask > 0)).all()


# -- Folders of them --------------------------------------------------------------------------------------------------


def test_folders_hold_what_is_made(tree, tmp_path):
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


def test_images_of_many_sizes(tmp_path):
    for number, size in enumerate([(20, 10), (9, 30), (16, 16)]):
        save(picture(number, size), tmp_path / f"in/val/a/{number}.png")
        save(mask_of(number, size), tmp_path / f"in/masks/val/a/{number}.png")
    write_variants(tmp_path / "in", tmp_path / "out", ["mixed_same"])
    for number, size in enumerate([(20, 10), (9, 30), (16, 16)]):
        assert pixels(tmp_path / f"out/mixed_same/val/a/{number}.png").shape == (size[1], size[0], 3)


def test_what_cannot_be_written_is_refused(tree, tmp_path):
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
def test_any_value_but_0_is_foreground(mask, tmp_path):
    mask.save(tmp_path / "mask.png")
    with Image.open(tmp_path / "mask.png") as file:
        found = foreground(file)
    assert found.dtype == bool
    assert np.argwhere(found).tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
