"""Images that ask for more than they are, and links that lead elsewhere: refused by name, or said."""

import struct
import warnings
import zlib

import pytest
from PIL import Image

from droptop import BadRequest
from droptop.data import image_decoding, image_folders
from droptop.data.image_decoding import read_image

from little_memory import refusals
from pictures import picture, save, write_tree

# -- Images -----------------------------------------------------------------------------------------------------------


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, *chunks, colour=2):
    """A PNG file that says it has so many pixels, and holds the first few of them."""
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(bytes(1 << 20)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(chunks) + body + chunk(b"IEND", b"")


def webp(width, height):
    """A WebP file that says so of its canvas."""
    sides = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    body = b"WEBP" + b"VP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + sides
    return b"RIFF" + struct.pack("<I", len(body)) + body


BOMB = zlib.compress(bytes(1 << 28), 9)  # 256 KiB that become 256 MiB
IMAGES = {
    "60,000 px per side": (png(60_000, 60_000), "3600000000 pixels"),
    "60,000 px wide": (png(60_000, 2_900), "60,000 x 2,900 pixels, more than 67,108,864 in all"),
    "60,000 px of grey, with alpha": (png(60_000, 2_900, colour=4), "more than 67,108,864"),
    "a profile": (png(8, 8, chunk(b"iCCP", b"x\0\0" + BOMB)), "does not decode|is read"),
    "a text": (png(8, 8, chunk(b"zTXt", b"x\0\0" + BOMB)), "Decompressed data too large|does not decode"),
    "many texts": (png(8, 8, *[chunk(b"zTXt", b"x\0\0" + zlib.compress(bytes(1 << 20)))] * 200), "too large|does not"),
    "a WebP file": (webp(1 << 24, 1 << 7), "does not decode"),
    "a WebP file of all pixels it may have": (webp(16_383, 16_383), "does not decode"),
    "PostScript": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nquit\n", "cannot identify"),
}


def test_images_that_are_bombs_are_refused(tmp_path):
    paths = []
    for number, (data, _) in enumerate(IMAGES.values()):
        paths.append(tmp_path / f"{number}.png")
        paths[-1].write_bytes(data)
    huge = tmp_path / "huge.png"
    with huge.open("wb") as file:
        file.truncate(1 << 30)
    said = refusals("from droptop.data.image_decoding import read_image", "read_image(path)", *paths, huge)
    for line, words in zip(said, [*(words for _, words in IMAGES.values()), "the file has 1,073,741,824 bytes"]):
        assert any(word in line for word in words.split("|")), line


def test_a_real_image_of_the_most_pixels_is_read_and_one_more_row_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(image_decoding, "MOST_PIXELS", 600)
    picture(1, (30, 20)).save(tmp_path / "fits.png")
    picture(1, (30, 21)).save(tmp_path / "more.png")
    assert read_image(tmp_path / "fits.png").size == (30, 20)
    with pytest.raises(BadRequest, match=r"more.png does not decode: it has 30 x 21 pixels, more than 600 in all"):
        read_image(tmp_path / "more.png")
    picture(1, (160, 160)).save(tmp_path / "large.jpg")
    assert read_image(tmp_path / "large.jpg", at_least=8).size == (20, 20)  # decoded at a part of its size


def test_large_images_are_decoded_one_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(image_decoding, "LARGE", 100)
    picture(1, (30, 20)).save(tmp_path / "x.png")
    seen = []
    real = Image.Image.convert

    def convert(image, *args, **kwargs):
        seen.append(image_decoding.ONE_AT_A_TIME.locked())
        return real(image, *args, **kwargs)

    monkeypatch.setattr(Image.Image, "convert", convert)
    read_image(tmp_path / "x.png")
    assert all(seen)
    assert seen
    assert not image_decoding.ONE_AT_A_TIME.locked()


# -- Links ------------------------------------------------------------------------------------------------------------


def test_links_out_of_the_folder_are_followed_and_said(tmp_path):
    tree = write_tree(tmp_path / "tree", {"train": {"a": 2, "b": 2}, "test": {"a": 1, "b": 1}})
    save(picture(7), tmp_path / "elsewhere/away.png")
    (tree / "train/a/link.png").symlink_to(tmp_path / "elsewhere/away.png")
    (tree / "train/a/within.png").symlink_to("../b/0.png")
    (tree / "train/c").symlink_to(tmp_path / "elsewhere")
    (tree / "test/c").symlink_to(tree / "test/a")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        train, _, _ = image_folders.read_tree(tree)
    assert train.classes == ("a", "b", "c")
    assert len(train) == 7
    said = [str(each.message) for each in told]
    assert said.count(f"{tree}: taken through links that lead out of the folder: 2, such as train/c") == 1


def test_a_link_to_the_linked_folder_itself_is_within(tmp_path):
    tree = write_tree(tmp_path / "tree", {"train": {"a": 2, "b": 2}, "test": {"a": 1, "b": 1}})
    (tmp_path / "name").symlink_to(tree)
    (tree / "train/a/9.png").symlink_to(tmp_path / "name/train/b/0.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(image_folders.read_tree(tmp_path / "name")[0]) == 5
