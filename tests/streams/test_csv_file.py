"""`csv:FILE` through the real command and through `make_stream`."""

import json
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from droptop import BadRequest, make_stream
from droptop.cli import main
from droptop.data import csv_images
from droptop.data.columns import Columns

from pictures import picture, pixels, save

SMALL = {"image_size": 12, "batch": 2}
FLAGS = ("--image-size", "12", "--batch", "2", "--width", "4", "--maps", "0", "--debias", "none", "--limit", "4")


def write_list(folder, rows, header="path,label,split", name="list.csv", size=(12, 12)):
    """A picture per row, each another, and the file that lists them."""
    for seed, row in enumerate(rows):
        save(picture(seed, size), folder / row.split(",")[0])
    (folder / name).write_text("\n".join([header, *rows, ""]))
    return folder / name


@pytest.fixture
def listed(tmp_path):
    classes = ("bee", "ant", "cow", "dog")
    rows = [f"images/{name}{number}.png,{name},train" for name in classes for number in range(4)]
    rows += [f"more/{name}.png,{name},{split}" for name in classes for split in ("test",)]
    rows += [f"more/{name}2.png,{name},test-plain" for name in classes]
    return write_list(tmp_path / "here", rows)


def test_a_stream_of_listed_images(listed, tmp_path, monkeypatch):
    stream = make_stream(f"csv:{listed}", **SMALL)
    assert stream.spec.classes == ("ant", "bee", "cow", "dog")
    assert stream.train.y.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    assert {name: test.y.tolist() for name, test in stream.tests.items()} == {
        "test": [0, 1, 2, 3],
        "plain": [0, 1, 2, 3],
    }
    assert stream.tasks == ((0, 1), (2, 3))
    assert np.array_equal(stream.train.x[5].permute(1, 2, 0), pixels(tmp_path / "here/images/bee1.png"))
    assert np.array_equal(stream.tests["plain"].x[2].permute(1, 2, 0), pixels(tmp_path / "here/more/cow2.png"))
    monkeypatch.chdir(tmp_path)
    assert (make_stream("csv:here/list.csv", **SMALL).train.x == stream.train.x).all()


def test_paths_may_lead_anywhere(tmp_path):
    save(picture(50), tmp_path / "far/away.png")
    here = write_list(tmp_path / "a/b", [f"{row}.png,{row % 2}" for row in range(6)], "path,label")
    with here.open("a") as file:
        file.write(f"{tmp_path}/far/away.png,1\n")
    (tmp_path / "a/b/6.png").hardlink_to(tmp_path / "a/b/0.png")
    with here.open("a") as file:
        file.write("../b/6.png,0\n")
    stream = make_stream(f"csv:{here}", **SMALL)  # a fifth of each class, one image, is held out
    assert (len(stream.train), sorted(stream.tests["test"].y.tolist())) == (6, [0, 1])
    images = [x.numpy().tobytes() for part in (stream.train, stream.tests["test"]) for x in part.x.permute(0, 2, 3, 1)]
    paths = [tmp_path / "far/away.png", *(here.parent / f"{row}.png" for row in (0, *range(6)))]
    assert sorted(images) == sorted(pixels(path).tobytes() for path in paths)


def test_columns_and_splits_are_named_by_options(tmp_path):
    """The header of Waterbirds, whose splits are numbers."""
    rows = [f"{number:02}.jpg,{number % 2},{number // 8},{number % 3}" for number in range(24)]
    file = write_list(tmp_path, rows, "img_filename,y,split,place", "metadata.csv")
    (tmp_path / "images").mkdir()
    for image in tmp_path.glob("*.jpg"):
        image.rename(tmp_path / "images" / image.name)
    names = {"image_column": "img_filename", "image_folder": "images"}
    with pytest.warns(UserWarning, match="split 1 left out"):
        stream = make_stream(f"csv:{file}", **SMALL, **names)
    assert (stream.spec.classes, len(stream.train), list(stream.tests)) == (("0", "1"), 8, ["test"])
    stream = make_stream(f"csv:{file}", **SMALL, **names, test_splits="2,1", label_column="place", train_split="0")
    assert (stream.spec.classes, list(stream.tests)) == (("0", "1", "2"), ["2", "1"])
    assert stream.tests["1"].y.tolist() == [number % 3 for number in range(8, 16)]
    with pytest.raises(BadRequest, match="--image-folder takes an existing folder"):
        make_stream(f"csv:{file}", **SMALL, **names | {"image_folder": "pictures"})


def test_images_of_every_mode_and_size_become_one_shape(tmp_path):
    """Black where they are transparent, and as a person sees them otherwise."""
    colour = picture(1, (24, 24))
    clear = colour.convert("RGBA")
    clear.putalpha(Image.fromarray(np.zeros((24, 24), np.uint8)))
    modes = {"rgb": colour, "clear": clear, "l": colour.convert("L"), "la": colour.convert("LA")}
    modes |= {"p": colour.quantize(8), "one": colour.convert("1"), "cmyk": colour.convert("CMYK")}
    modes["deep"] = Image.fromarray((np.asarray(colour.convert("L")).astype(np.uint16)) << 8)
    for name, image in modes.items():
        image.save(tmp_path / f"{name}.tif")
    save(picture(3, (50, 13)), tmp_path / "wide.jpg")
    rows = "".join(f"{name}.tif,{number % 2},train\n" for number, name in enumerate(modes))
    (tmp_path / "list.csv").write_text(f"path,label,split\n{rows}wide.jpg,0,train\nwide.bmp,1,test\nhigh.bmp,0,test\n")
    save(picture(4, (90, 24)), tmp_path / "wide.bmp")
    save(picture(4, (24, 90)), tmp_path / "high.bmp")
    stream = make_stream(f"csv:{tmp_path / 'list.csv'}", image_size=24, batch=2)
    made = dict(zip(sorted(modes), stream.train.x.permute(0, 2, 3, 1).numpy()))
    grey = np.asarray(colour.convert("L"))[..., None].repeat(3, 2)
    assert np.array_equal(made["rgb"], colour)
    assert not made["clear"].any()
    for name in ("l", "la", "deep"):
        assert np.array_equal(made[name], grey)
    assert np.array_equal(made["p"], modes["p"].convert("RGB"))
    assert np.abs(made["cmyk"].astype(int) - np.asarray(colour)).max() <= 2
    assert set(made["one"].flat) == {0, 255}


def test_columns_of_groups(tmp_path):
    rows = [
        f"{row:02}.png,{'ab'[row % 2]},{('train', 'test')[row // 8]},{('sea', 'ice')[row // 2 % 2]},{row}"
        for row in range(16)
    ]
    file = write_list(tmp_path, rows, "path,label,split,Place,id")
    for lines in (rows, rows[::-1]):
        file.write_text("\n".join(["path,label,split,Place,id", *lines]))
        groups = make_stream(f"csv:{file}", **SMALL).tests["test"].groups
        assert list(groups) == ["Place"]
        assert [groups["Place"].names[code] for code in groups["Place"].codes] == ["sea", "sea", "ice", "ice"] * 2
    groups = make_stream(f"csv:{file}", **SMALL, group_columns="label*Place").tests["test"].groups["label*Place"]
    assert [groups.names[code] for code in groups.codes] == ["a sea", "b sea", "a ice", "b ice"] * 2
    held = make_stream(f"csv:{file}", **SMALL, hold_out=50).tests["held-out"]
    for image, code in zip(held.x.permute(0, 2, 3, 1), held.groups["Place"].codes):
        (row,) = [row for row in range(8) if np.array_equal(image, picture(row))]
        assert held.groups["Place"].names[code] == ("sea", "ice")[row // 2 % 2]
    noted = csv_images.version(str(file))
    file.write_text(file.read_text().replace("15.png,b,test,ice", "15.png,b,test,sea"))
    assert csv_images.version(str(file)) != noted
    file.write_text(file.read_text().replace("15.png,b,test,sea", "15.png,b,test,"))
    with pytest.raises(BadRequest, match=r"list\.csv, line 2, has no Place"):
        make_stream(f"csv:{file}", **SMALL)
    with pytest.raises(BadRequest, match=r"--group-columns takes other columns of .*: Place, id; not plce; did"):
        make_stream(f"csv:{file}", **SMALL, group_columns="plce")
    file.write_text(
        file.read_text().replace("00.png,a,train,sea", "00.png,a,train,").replace("15.png,b,test,", "15.png,b,test,x")
    )
    assert list(make_stream(f"csv:{file}", **SMALL).tests["test"].groups) == ["Place"]  # training images need none


# -- What is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["a.png,1", "gone.png,2"], r"list\.csv, line 3: .*gone\.png is not there"),
        (["a.png,1", "gone.png,2", "lost.png,2"], "gone.png is not there; and 1 more file like it"),
        (["a.png,1", "sub,2"], r"line 3: .*sub is no file"),
        (["a.png,1", "a.png,2"], r"line 3, names a\.png again, which stands in line 2"),
        (["a.png,1", "sub/../a.png,2"], r"line 3, names sub/\.\./a\.png again, which stands in line 2"),
        (["a.png,1", "b.png,"], "line 3, has no label"),
        (["a.png,1", ",2"], "line 3, has no path"),
        (["a.png,1", "b.png,1"], r"list\.csv has training images of one class, 1: a stream has two at least"),
        (["a.png,1", "b.png,2"], "line 2: class 1 has one image, and .* no test images: none can be held out"),
    ],
)
def test_a_list_that_makes_no_stream_is_refused(tmp_path, capsys, rows, words):
    (tmp_path / "sub").mkdir()
    for name in "ab":
        save(picture(1), tmp_path / f"{name}.png")
    file = tmp_path / "list.csv"
    file.write_text("\n".join(["path,label", *rows]))
    for use in (lambda: make_stream(f"csv:{file}", **SMALL), lambda: csv_images.check(str(file))):
        with pytest.raises(BadRequest, match=words) as error:
            use()
        assert "\n" not in str(error.value)
    assert main(["run", "--data", f"csv:{file}", *FLAGS, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_classes_and_splits_that_do_not_fit_are_refused(tmp_path):
    rows = [f"{number}.png,{'ab'[number % 2]},train" for number in range(4)]
    file = write_list(tmp_path, [*rows, "4.png,a,test", "5.png,zebra,test"])
    with pytest.raises(BadRequest, match="line 7: class zebra is in test and not in the training images"):
        make_stream(f"csv:{file}", **SMALL)
    file.write_text(file.read_text().replace("5.png,zebra,test", "5.png,b,"))
    with pytest.raises(BadRequest, match="line 7, has no split"):
        make_stream(f"csv:{file}", **SMALL)
    file = write_list(tmp_path, rows, "path,label,part")
    with pytest.raises(BadRequest, match="--test-splits takes a file with a column of splits"):
        make_stream(f"csv:{file}", **SMALL, test_splits="test")
    with pytest.raises(BadRequest, match="has no column of labels by a usual name"):
        make_stream(f"csv:{write_list(tmp_path, rows, 'path,sort,part')}", **SMALL)
    with pytest.raises(BadRequest, match="csv: is not the whole name: csv:FILE"):
        make_stream("csv:")


def huge_png(side):
    """The head of a PNG that claims to be so large."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def test_images_that_cannot_be_read_are_refused_before_anything_is_written(listed, capsys):
    for data, words in (
        (b"not an image", "cannot identify image file"),
        ((listed.parent / "images/cow1.png").read_bytes()[:200], "truncated"),
        (huge_png(30_000), "exceeds limit"),
    ):
        (listed.parent / "images/ant0.png").write_bytes(data)
        assert main(["run", "--data", f"csv:{listed}", *FLAGS, "--out", str(listed.parent / "out")]) == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert "images/ant0.png does not decode: " in said
        assert words in said
        assert not (listed.parent / "out").exists()


# -- Commands ---------------------------------------------------------------------------------------------------------


def test_commands_know_the_list(listed, monkeypatch, capsys):
    monkeypatch.chdir(listed.parent)
    assert main(["data", "check", "csv:list.csv"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "csv:list.csv: in order",
        "training: 16 images decode (ant 4, bee 4, cow 4, dog 4)",
        "test: 4 images decode (ant 1, bee 1, cow 1, dog 1)",
        "plain: 4 images decode (ant 1, bee 1, cow 1, dog 1)",
    ]
    assert csv_images.where("list.csv") == "list.csv, 16 + 4 + 4 images of 4 classes"


def test_a_run_goes_on_with_the_same_images_alone(listed, monkeypatch, capsys):
    home = listed.parent
    monkeypatch.chdir(home)
    assert main(["run", "--data", "csv:list.csv", *FLAGS, "--seeds", "1", "--out", "run"]) == 0
    assert f'data = "csv:{listed}"' in (home / "run/config.toml").read_text()
    result = json.loads((home / "run/seed-0/result.json").read_text())
    assert (sorted(result["tests"]), len(result["tasks"])) == (["plain", "test"], 2)
    text, before = listed.read_text(), make_stream(f"csv:{listed}", **SMALL)
    head, *rows = text.splitlines()
    listed.write_text("\n".join([head, *reversed(rows)]))
    assert csv_images.version(str(listed)) == json.loads((home / "run/environment.json").read_text())["data"]
    after = make_stream(f"csv:{listed}", **SMALL)
    for ours, theirs in ((before.train, after.train), (before.tests["plain"], after.tests["plain"])):
        assert (ours.x == theirs.x).all()
        assert (ours.y == theirs.y).all()
    for changed in (text.replace("ant0.png,ant", "ant0.png,bee"), text.replace("images/cow3.png,cow,train\n", "")):
        listed.write_text(changed)
        assert main(["resume", "run", "--seeds", "2"]) == 2
        assert f"--data csv:{listed} is not what run began with" in capsys.readouterr().err
    listed.write_text(text)
    save(picture(9, (13, 13)), home / "images/cow3.png")
    assert main(["resume", "run", "--seeds", "2"]) == 2


def test_the_version_is_that_of_the_columns_that_are_taken(listed):
    listed.write_text(listed.read_text().replace("path,label", "path,kind"))
    assert csv_images.version(str(listed)) is None
    of_kind = csv_images.version(str(listed), Columns(label="kind"))
    assert of_kind is not None
    assert csv_images.version(str(listed), Columns(label="kind", tests="test")) != of_kind
