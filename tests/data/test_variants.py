"""The variants of one image, pixel by pixel."""

import numpy as np
import pytest

from droptop.data.variants import Box, box_of, mixed, no_fg, only_bg_b, only_bg_t, only_fg

from pictures import mask_of, picture

IMAGE = np.asarray(picture(1, (9, 7)))  # 9 wide, 7 high
MASK = np.asarray(mask_of(1, (9, 7))) > 0


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


def test_only_bg_b_blackens_the_box():
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


def test_boxes_at_the_edges_are_tiled():
    assert not only_bg_t(IMAGE, Box(0, 0, 9, 7)).any()  # no background to fill it with
    assert (only_bg_t(IMAGE, Box(0, 0, 0, 0)) == IMAGE).all()
    assert (only_bg_b(IMAGE, Box(0, 0, 0, 0)) == IMAGE).all()


def test_mixed_takes_each_pixel_from_one_of_the_two():
    other = np.asarray(picture(2, (9, 7)))
    made = mixed(IMAGE, MASK, other)
    assert (made[MASK] == IMAGE[MASK]).all()
    assert (made[~MASK] == other[~MASK]).all()
