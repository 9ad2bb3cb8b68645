"""Data that asks for more than it is: refused by name, in one line, by a process that may have little more memory."""

import json
import os
import struct
import subprocess
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from droptop import BadRequest
from droptop.data import csv_tables, image_decoding, image_folders
from droptop.data.image_decoding import read_image
from droptop.nets import ViTConfig, build

from pictures import picture, save, write_tree

MEBIBYTES = 400  # more than a process has before it reads a file; what it reads would be gigabytes
LIMITED = """
import resource, sys
from pathlib import Path
{imports}
from droptop.errors import BadRequest
have = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (have + {mebibytes} * 2**20,) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
for path in map(Path, sys.argv[1:]):
    try:
        {read}
    except BadRequest as error:
        print(error)
    else:
        print(path, "is read")
"""


def refusals(imports, read, *paths, mebibytes=MEBIBYTES):
    """What a process of little memory says of each file: a line each."""
    code = LIMITED.format(imports=imports, read=read, mebibytes=mebibytes)
    done = subprocess.run([sys.executable, "-c", code, *map(str, paths)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(paths)
    for line, path in zip(lines, paths):
        assert line.startswith(str(path)) or f" {path}" in line, line
    return [line.replace(str(path), "IT") for line, path in zip(lines, paths)]


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


# -- Tables -----------------------------------------------------------------------------------------------------------


def test_tables_with_a_field_of_500_mb_are_refused(tmp_path):
    line, quoted, wide = (tmp_path / f"{name}.csv" for name in ("line", "quoted", "wide"))
    line.write_text("path,label\n")
    quoted.write_text('path,label\n"' + ("x" * 999 + "\n") * 1000)
    for path in (line, quoted):
        os.truncate(path, 5 * 10**8)  # zeros, which no disk holds
    wide.write_text(",".join(map(str, range(150_000))) + "\n")
    imports = "from droptop.data.csv_tables import read_table"
    said = refusals(imports, "read_table(path)", line, quoted, wide, mebibytes=100)
    assert said == [
        "IT, line 2, is longer than 1,048,576 letters",
        "IT, line 133: field larger than field limit (131072)",
        "IT: the first line names 150,000 columns, more than 10,000",
    ]


# -- Pickles ----------------------------------------------------------------------------------------------------------


def pickled(path, length, end=b""):
    """A dictionary with a text of zeros, which no disk holds, but for its end."""
    with path.open("wb") as file:
        start = b"\x80\x02}U\x01aX" + struct.pack("<I", length)
        file.write(start)
        file.seek(len(start) + length - len(end))
        file.write(end + b"s.")
    return path


def test_a_pickle_with_a_text_of_500_mb_is_refused(tmp_path):
    large = pickled(tmp_path / "large", 5 * 10**8)
    wide = pickled(tmp_path / "wide", 10**8, "\U0001f600".encode())  # 4 bytes for each letter
    said = refusals("from droptop.data.pickles import load", "load(path)", large, wide, mebibytes=300)
    assert said[0] == "IT is no CIFAR file: it has 500,000,013 bytes"
    assert "a long text that no array's bytes are written as" in said[1]


# -- Weights ----------------------------------------------------------------------------------------------------------


def tensor(begin, end, shape=(2,), kind="F32"):
    return {"dtype": kind, "shape": list(shape), "data_offsets": [begin, end]}


def written(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


BLOCK = "blocks.0.mlp.fc1.weight"
WEIGHTS = {
    "overlapping": ({"a": tensor(0, 8), "b": tensor(4, 12)}, bytes(12)),
    "the same bytes twice": ({"a": tensor(0, 8), "b": tensor(0, 8)}, bytes(8)),
    "beyond the end": ({"a": tensor(0, 8)}, b""),
    "bytes that are nobody's": ({"a": tensor(0, 8)}, bytes(80)),
    "a shape beyond numbers": ({"a": tensor(0, 8, (1 << 62, 4))}, bytes(8)),
    "200,000 names": ({f"t{n}": tensor(0, 0, (0,)) for n in range(200_000)}, b""),
    "a long header": (b"{" + b" " * (1 << 24) + b"}", b""),
    "a pickle": (b"\x80\x02}q\x00.", b""),
    "another net": ({"a": tensor(0, 8)}, bytes(8)),
    "an empty ViT of a large width": (
        {
            "cls_token": tensor(0, 0, (0, 1, 1 << 40)),
            "pos_embed": tensor(0, 0, (0, 5, 1 << 40)),
            "patch_embed.proj.weight": tensor(0, 0, (0, 3, 8, 8)),
            BLOCK: tensor(0, 0, (0, 1 << 40)),
        },
        b"",
    ),
    "a ViT of numbers": (
        {name: tensor(0, 4, ()) for name in ("cls_token",)}
        | {"pos_embed": tensor(4, 8, (1,)), "patch_embed.proj.weight": tensor(8, 12, ()), BLOCK: tensor(12, 16, ())},
        bytes(16),
    ),
    "a ViT of many blocks, all but empty": (
        {
            "cls_token": tensor(0, 256, (1, 1, 64)),
            "pos_embed": tensor(256, 256 + 1280, (1, 5, 64)),
            "patch_embed.proj.weight": tensor(1536, 1536 + 49152, (64, 3, 8, 8)),
            BLOCK: tensor(50688, 50688 + 65536, (256, 64)),
        }
        | {f"blocks.{n}.x": tensor(116224, 116224, (0,)) for n in range(20_000)},
        bytes(116224),
    ),
}


def test_weights_that_are_no_weights_are_refused(tmp_path):
    """The last ones are a quarter of a gigabyte in half precision; the file is mapped twice, but not read."""
    paths = [written(tmp_path / str(n), header, data) for n, (header, data) in enumerate(WEIGHTS.values())]
    paths.append(written(tmp_path / "large", {"a": tensor(0, 1 << 28, (1 << 27,), "F16")}))
    os.truncate(paths[-1], paths[-1].stat().st_size + (1 << 28))
    said = refusals(
        "from droptop.nets import NetConfig, ViTConfig, build",
        "[build(config, 3, 10, 0, str(path)) for config in (NetConfig(width=4), ViTConfig())[path.stem.isdigit() :]]",
        *paths,
        mebibytes=800,
    )
    assert all(line.startswith("--weights ") for line in said)
    assert "invalid offset" in said[0]
    assert "header has" in said[5]
    assert "header has" in said[6]
    assert said[-1].startswith("--weights IT does not fit this net: a, bn1.bias")


def test_half_precision_still_fills_a_net(tmp_path):
    from safetensors.torch import save_file

    source = build(ViTConfig(patch=8, width=16, depth=2, heads=2, input_size=16), 3, 10, 1, "random")
    halves = {name: value.half() for name, value in source.state_dict().items()}
    save_file(halves, tmp_path / "w")
    model = build(ViTConfig(heads=2), 3, 10, 2, str(tmp_path / "w"))
    for name, value in model.state_dict().items():
        assert value.dtype == torch.float32
        assert torch.equal(value, halves[name].float())


# -- Parquet ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def parquet():
    pytest.importorskip("datasets")
    return pytest.importorskip("pyarrow.parquet")


def test_parquet_files_that_become_terabytes_are_refused(tmp_path, parquet):
    import pyarrow

    value, rows = bytes(10**6), pyarrow.array(np.zeros(10**5, np.int32))
    many = pyarrow.DictionaryArray.from_arrays(rows, pyarrow.array([value]))
    columns = {
        "flat": many,
        "nested": pyarrow.StructArray.from_arrays([many, pyarrow.array(["x"] * 10**5)], ["bytes", "path"]),
        "zeros": pyarrow.array([value] * 80),
        "numbers": pyarrow.array(np.ones(10**7, np.int8)),
    }
    for name, column in columns.items():
        (tmp_path / name).mkdir()
        table, path = pyarrow.table({"image": column}), tmp_path / name / "train.parquet"
        is_small = name != "zeros"
        parquet.write_table(table, path, compression="zstd", use_dictionary=is_small, dictionary_pagesize_limit=1 << 24)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.parquet")) < 2**20
    imports = "import pyarrow.parquet\nfrom droptop.data import parquet_files\nparquet_files.ROOM = 2**26"
    paths = [tmp_path / name for name in columns]
    said = refusals(imports, "parquet_files.check_folder(path)", *paths, mebibytes=2000)  # pyarrow reserves much
    for line in said:
        assert line.startswith("IT/train.parquet becomes more than 67,108,864 bytes when it is read, from "), line


def test_parquet_files_of_photographs_are_read(tmp_path, parquet):
    import pyarrow

    from droptop.data.parquet_files import check_folder

    images = [os.urandom(2000) for _ in range(500)]
    table = pyarrow.table({"image": images, "label": ["a golden retriever", None] * 250, "number": range(500)})
    parquet.write_table(table, tmp_path / "train.parquet")
    check_folder(tmp_path)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(BadRequest, match=f"^{tmp_path}/bad.parquet is no Parquet file, or a damaged one"):
        check_folder(tmp_path)


def test_the_measure_of_a_column_is_its_bytes(tmp_path, parquet):
    """Each value as often as it stands there, as a slow loop counts them."""
    import pyarrow

    from droptop.data.parquet_files import bytes_of

    values = [b"ab" * (n % 7) if n % 5 else None for n in range(1000)]
    path = tmp_path / "x.parquet"
    for nested in (False, True):
        column = [{"bytes": value} for value in values] if nested else values
        parquet.write_table(pyarrow.table({"image": column}), path)
        about = parquet.read_metadata(path).row_group(0).column(0)
        assert bytes_of(path, 0, about, 0, most=0) == sum(len(value) for value in values if value)


def test_limits_are_those_of_the_page():
    """What docs/trust.md promises."""
    text = (Path(__file__).parents[2] / "docs/trust.md").read_text()
    for number in (image_decoding.MOST_PIXELS, csv_tables.LONGEST_LINE):
        assert f"{number:,}" in text
