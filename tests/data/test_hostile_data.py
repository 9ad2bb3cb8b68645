"""Tables, pickles and weights that ask for more than they are: refused by name, in one line, in little memory."""

import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from droptop import BadRequest
from droptop.data import csv_tables, image_decoding
from droptop.nets import ViTConfig, build

from little_memory import refusals

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
