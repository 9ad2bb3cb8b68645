"""The maps that a run recorded, on its page."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from droptop.runs.records import Maps, Moment, read_maps

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from droptop.report.page.attention import attention_data
from droptop.report.page.render import describe


def rows_of(section):
    return [dict(zip(section.columns, row)) for row in section.rows]


def section_of(page, name):
    return next(section for section in page.sections if section.name == name)


@pytest.fixture(scope="module")
def page(comparison):
    return describe(comparison, "again")


def test_maps_reach_the_page_as_they_were_recorded(page, comparison):
    maps = read_maps(comparison / "droptop", 0)
    arm = page.attention["arms"][1]
    assert [moment["step"] for moment in page.attention["moments"]] == [moment.step for moment in maps.moments]
    height, width = arm["cells"]
    for place, moment in enumerate(maps.moments):
        shown = np.frombuffer(base64.b64decode(arm["attention"][place]), np.uint8).reshape(8, height, width)
        for image, own in zip(shown, moment.attention):
            assert (image.min(), image.max()) == (0, 255)
            assert np.allclose(image / 255, (own - own.min()) / (own.max() - own.min()), atol=0.003)
        bits = np.unpackbits(np.frombuffer(base64.b64decode(arm["dropped"][place]), np.uint8))
        assert np.array_equal(bits.reshape(8, height, width), moment.dropped[:8])
    assert page.attention["arms"][0]["dropped"] == [None] * 4
    for source, image in zip(page.attention["images"], maps.images):
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2])))), image)


def test_attention_on_the_shortcut_is_the_share_of_the_top_cells(page, comparison):
    maps = read_maps(comparison / "none", 0)
    rows = [row for row in rows_of(section_of(page, "attention")) if row["series"] == "none"]
    cells = maps.shortcut[0].size
    for row, moment in zip(rows, maps.moments, strict=True):
        shares = []
        for attention, shortcut in zip(moment.attention, maps.shortcut):
            top = sorted(range(cells), key=lambda cell: -attention.flat[cell])[: round(0.05 * cells)]
            shares.append(np.mean([shortcut.flat[cell] for cell in top]))
        assert row["percent"] == pytest.approx(100 * np.mean(shares), abs=1e-3)


def test_maps_without_a_common_moment_are_left_out():
    maps = Maps(np.zeros((1, 4, 4, 1), np.uint8), ["a"], np.zeros(1), None, [Moment(1, 0, np.ones((1, 2, 2)), None)])
    other = maps._replace(moments=[Moment(2, 0, np.ones((1, 2, 2)), None)])
    assert attention_data({"none": maps, "droptop": other}, []) is None
    assert attention_data({}, []) is None
    assert len(attention_data({"none": maps}, [])["moments"]) == 1  # a map without contrast, a picture without colour
