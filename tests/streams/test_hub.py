"""`hf:` on files that the library itself writes, through the real command and through `make_stream`."""

import io
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from droptop import BadRequest, make_stream
from droptop.cli import main
from droptop.data import hub, hub_images
from droptop.data.columns import Columns
from droptop.errors import DownloadFailed
from droptop.runs.config import configure
from droptop.runs.requests import record_environment
from droptop.streams import find

from hub_server import Hub, serving
from pictures import picture, pixels, save

datasets = pytest.importorskip("datasets", reason="needs the library datasets, which the extra [hub] brings")

SMALL = {"image_size": 12, "batch": 2}
FLAGS = ("--image-size", "12", "--batch", "2", "--width", "4", "--maps", "0", "--debias", "none", "--limit", "4")
CLASSES = ["ant", "bee", "cow", "dog"]
COMMIT, NEWER = "b" * 40, "a" * 40
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def hub_cache(tmp_path, monkeypatch):
    """The caches of the libraries; and no hub answers."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "files"))
    reach(monkeypatch, NOWHERE)
    return tmp_path / "hub"


def split(labels, seed=0, **more):
    """A split with a picture per label, each another."""
    table = {"image": [picture(seed + row) for row in range(len(labels))], "label": labels}
    kinds = {"image": datasets.Image(), "label": datasets.ClassLabel(names=CLASSES)}
    if isinstance(labels[0], str):
        kinds["label"] = datasets.Value("string")
    for name, values in more.items():
        table[name] = values
        kinds[name] = datasets.Value("string" if isinstance(values[0], str) else "int64")
    return datasets.Dataset.from_dict(table, features=datasets.Features(kinds))


def usual(**more):
    return {"train": split([0, 1, 2, 3] * 4, 0, **more), "test": split([3, 2, 1, 0], 50)}


def write(folder, splits, form):
    """The splits in a folder, as one of the library's forms."""
    if form == "saved":
        datasets.DatasetDict(splits).save_to_disk(folder)
    for name, rows in splits.items():
        if form == "parquet":
            (folder / "data").mkdir(parents=True, exist_ok=True)
            rows.to_parquet(folder / "data" / f"{name}-00000-of-00001.parquet")
        if form == "arrow":
            rows.save_to_disk(folder.parent / "aside")
            folder.mkdir(parents=True, exist_ok=True)
            (file,) = (folder.parent / "aside").glob("*.arrow")
            file.rename(folder / f"{name}.arrow")
            shutil.rmtree(folder.parent / "aside")
    return folder


def as_bytes(seed):
    return torch.from_numpy(np.array(picture(seed))).permute(2, 0, 1)


# -- Folders ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["parquet", "arrow", "saved"])
def test_a_stream_of_a_folder(tmp_path, form):
    stream = make_stream(f"hf:{write(tmp_path / 'here', usual(), form)}", **SMALL)
    assert (stream.spec.classes, stream.tasks, list(stream.tests)) == (tuple(CLASSES), ((0, 1), (2, 3)), ["test"])
    assert (stream.train.y.tolist(), stream.tests["test"].y.tolist()) == ([0, 1, 2, 3] * 4, [3, 2, 1, 0])
    for row in range(16):
        assert torch.equal(stream.train.x[row], as_bytes(row))
    assert torch.equal(stream.tests["test"].x[2], as_bytes(52))


def test_one_split_alone_has_a_fifth_held_out(tmp_path):
    split([0, 1] * 10).save_to_disk(tmp_path / "one")
    stream = make_stream(f"hf:{tmp_path / 'one'}", **SMALL)
    assert stream.spec.classes == ("ant", "bee")  # classes without images are none
    assert stream.tests["test"].y.tolist().count(0) == stream.tests["test"].y.tolist().count(1) == 2
    images = torch.cat([stream.train.x, stream.tests["test"].x])
    assert sorted(image.numpy().tobytes() for image in images) == sorted(
        as_bytes(row).numpy().tobytes() for row in range(20)
    )
    for part in (stream.train, stream.tests["test"]):
        for image, label in zip(part.x, part.y):
            (row,) = [row for row in range(20) if torch.equal(image, as_bytes(row))]
            assert row % 2 == label


def test_labels_as_texts_and_numbers(tmp_path):
    folder = write(
        tmp_path / "here",
        {"train": split(["b", "a"] * 4, id=[10, 9] * 4), "test": split(["a", "b"], id=[9, 10])},
        "parquet",
    )
    assert make_stream(f"hf:{folder}", **SMALL).tests["test"].y.tolist() == [0, 1]
    by_number = make_stream(f"hf:{folder}", **SMALL, label_column="id")
    assert (by_number.spec.classes, by_number.train.y.tolist()) == (("9", "10"), [1, 0] * 4)


def test_splits_are_mapped_or_named(tmp_path):
    parts = usual() | {"validation": split([0, 1, 2, 3], 70), "test_far": split([0, 2, 1, 3], 80)}
    folder = write(tmp_path / "here", parts, "saved")
    with pytest.warns(UserWarning, match="split validation left out"):
        assert list(make_stream(f"hf:{folder}", **SMALL).tests) == ["test", "far"]
    stream = make_stream(f"hf:{folder}", **SMALL, train_split="test", test_splits="validation")
    assert (len(stream.train), list(stream.tests)) == (4, ["validation"])
    assert torch.equal(stream.tests["validation"].x[0], as_bytes(70))


def test_columns_of_groups_are_found_or_named(tmp_path):
    parts = {
        "train": split([0, 1] * 5, place=["sea"] * 10, lens=[3] * 10),
        "test": split([0, 1], place=["sea", "ice"], lens=[3, 4]),
    }
    folder = write(tmp_path / "here", parts, "parquet")
    with pytest.warns(UserWarning, match="no training image is in 1 of the groups by place: ice"):
        stream = make_stream(f"hf:{folder}", **SMALL)
    assert (list(stream.tests["test"].groups), stream.train.groups) == (["place"], {})
    assert stream.tests["test"].groups["place"].names == ("ice", "sea")
    with pytest.warns(UserWarning, match="by lens: 4"), pytest.warns(UserWarning, match=r"by label\*lens: bee 4"):
        groups = make_stream(f"hf:{folder}", **SMALL, group_columns="lens, label*lens").tests["test"].groups
    assert [groups["label*lens"].names[code] for code in groups["label*lens"].codes] == ["ant 3", "bee 4"]
    with pytest.raises(BadRequest, match=r"--group-columns takes other columns of .*: place, lens; not label"):
        make_stream(f"hf:{folder}", **SMALL, group_columns="label")
    folder = write(tmp_path / "one", {"train": split([0, 1] * 5, place=list("aaaaabbbbb"))}, "saved")
    stream = make_stream(f"hf:{folder}", **SMALL)
    for image, code in zip(stream.tests["test"].x, stream.tests["test"].groups["place"].codes):
        (row,) = [row for row in range(10) if torch.equal(image, as_bytes(row))]
        assert stream.tests["test"].groups["place"].names[code] == "ab"[row // 5]


def test_images_as_bytes_that_other_programs_wrote(tmp_path):
    """Without the library's types: pandas knows no images."""

    def file(seed, kind="PNG", mode="RGB"):
        buffer = io.BytesIO()
        picture(seed).convert(mode).save(buffer, kind)
        return buffer.getvalue()

    modes = [file(1), file(2, mode="L"), file(3, mode="P"), file(4, "TIFF", "CMYK")]
    pandas = pytest.importorskip("pandas")
    (tmp_path / "here").mkdir()
    rows = {"raw": modes, "photo": [{"bytes": one, "path": "x.png"} for one in modes[::-1]], "class": list("abab")}
    for name in ("train", "test"):
        pandas.DataFrame(rows).to_parquet(tmp_path / f"here/{name}.parquet")
    stream = make_stream(f"hf:{tmp_path / 'here'}", **SMALL)
    assert torch.equal(stream.train.x[3], as_bytes(1))
    stream = make_stream(f"hf:{tmp_path / 'here'}", **SMALL, image_column="raw")
    assert torch.equal(stream.train.x[0], as_bytes(1))
    assert np.array_equal(stream.train.x[1][0], picture(2).convert("L"))


def test_image_files_that_a_folder_names(tmp_path):
    """The layout of `imagefolder`: the library then gives paths in place of bytes."""
    for part in ("train", "test"):
        for seed in range(4):
            save(picture(seed), tmp_path / "here" / part / CLASSES[seed % 2] / f"{seed}.png")
    stream = make_stream(f"hf:{tmp_path / 'here'}", **SMALL)
    assert np.array_equal(stream.train.x[1].permute(1, 2, 0), pixels(tmp_path / "here/train/ant/2.png"))
    save(picture(9), tmp_path / "here/train/ant/2.png")
    assert torch.equal(make_stream(f"hf:{tmp_path / 'here'}", **SMALL).train.x[1], as_bytes(9))


@pytest.mark.parametrize(
    ("splits", "options", "words"),
    [
        ({"train": split(["a", "b"]).remove_columns("image")}, {}, r"has no column of images: it has label \(str"),
        ({"train": split(["a", "b"]).remove_columns("label")}, {}, "has no column of labels"),
        ({"train": split(["a", "a"])}, {}, "has training images of one class, a: a stream has two at least"),
        ({"train": split(["a", "b", "b"])}, {}, "class a has one image, and there is no test split"),
        (usual() | {"test": split([0]).rename_column("label", "y")}, {}, "test: there is no column label, which"),
        ({"train": split(["a", "b"]), "test": split(["zebra"])}, {}, "row 0: there are no training images of class z"),
        ({"train": split([0, 1]), "test": split([0, -1])}, {}, "test, row 1: column label has -1, and not a name"),
        ({"first": split([0, 1])}, {}, "has no split train but first: name one with --train-split"),
        (usual(), {"image_column": "label"}, "--image-column takes a column of images, as image; label is none"),
        (usual(), {"image_column": "photo"}, "--image-column takes a column of .*: image; not photo"),
        (usual(), {"label_column": "image"}, "--label-column takes a column of integers, texts or classes; image is"),
        (usual(), {"label_column": "lable"}, "not lable; did you mean label"),
        (usual(), {"revision": "main"}, "--revision is for repositories of the hub"),
    ],
)  # fmt: skip
def test_what_makes_no_stream_is_refused(tmp_path, splits, options, words):
    folder = write(tmp_path / "here", splits, "saved")
    with pytest.raises(BadRequest, match=words) as error:
        make_stream(f"hf:{folder}", **SMALL, **options)
    assert "\n" not in str(error.value)


def test_several_columns_of_classes_or_images_are_named(tmp_path):
    rows = split([0, 1] * 4).rename_column("label", "coarse").add_column("fine", [0, 1] * 4)
    rows = rows.cast_column("fine", datasets.ClassLabel(names=["x", "y"]))
    rows = rows.rename_column("image", "front")
    rows = datasets.concatenate_datasets(
        [rows, split([0, 1] * 4).select(range(7, -1, -1)).select_columns("image").rename_column("image", "back")],
        axis=1,
    )
    folder = write(tmp_path / "here", {"train": rows, "test": rows}, "parquet")
    with pytest.raises(BadRequest, match=r"has no column of images by a usual name, .* it has front, back"):
        make_stream(f"hf:{folder}", **SMALL)
    with pytest.raises(BadRequest, match=r"has no column of labels by a usual name, .* it has coarse, fine"):
        make_stream(f"hf:{folder}", **SMALL, image_column="front")
    stream = make_stream(f"hf:{folder}", **SMALL, image_column="back", label_column="fine")
    assert stream.spec.classes == ("x", "y")
    assert torch.equal(stream.train.x[0], as_bytes(7))


def test_images_that_do_not_decode_are_refused(tmp_path, capsys):
    rows = usual()
    column = [{"bytes": b"no image", "path": None} for row in range(2)]
    broken = datasets.Dataset.from_dict({"image": column, "label": [0, 1]}, features=rows["train"].features)
    folder = write(tmp_path / "here", rows | {"test": datasets.concatenate_datasets([rows["test"], broken])}, "saved")
    assert main(["run", "--data", f"hf:{folder}", *FLAGS, "--out", str(tmp_path / "out")]) == 2
    assert f"hf:{folder}, test, row 4, does not decode: cannot identify image file" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main(["data", "check", f"hf:{folder}"]) == 2
    said = capsys.readouterr().err
    assert "2 files are not in order" in said
    assert "test, row 5, does not decode" in said


# -- Commands ---------------------------------------------------------------------------------------------------------


def test_commands_know_the_folder(tmp_path, monkeypatch, capsys):
    folder = write(tmp_path / "here", usual(), "parquet")
    assert main(["data", "check", f"hf:{folder}"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"hf:{folder}: in order",
        "training: 16 images decode (ant 4, bee 4, cow 4, dog 4)",
        "test: 4 images decode (ant 1, bee 1, cow 1, dog 1)",
    ]
    assert hub_images.where(str(folder)) == f"hf:{folder}, 16 + 4 images of 4 classes"


def test_a_run_goes_on_with_the_same_files_alone(tmp_path, monkeypatch, capsys):
    folder = write(tmp_path / "here", usual(), "parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    assert main(["run", "--data", "hf:here", *FLAGS, "--seeds", "1", "--out", "run"]) == 0
    assert f'data = "hf:{folder}"' in (tmp_path / "run/config.toml").read_text()
    assert json.loads((tmp_path / "run/seed-0/result.json").read_text())["tests"].keys() == {"test"}
    noted = json.loads((tmp_path / "run/environment.json").read_text())["data"]
    assert noted == hub.open_data(str(folder)).version
    os.utime(folder / "data/train-00000-of-00001.parquet", (1, 1))  # the same bytes
    assert hub.open_data(str(folder)).version == noted
    capsys.readouterr()
    write(folder, {"train": split([1, 0, 2, 3] * 4)}, "parquet")
    assert main(["resume", "run", "--seeds", "2"]) == 2
    assert f"--data hf:{folder} is not what run began with" in capsys.readouterr().err


def test_folders_that_cannot_be_opened_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/train.parquet").write_bytes(b"no parquet")
    for name, words in (
        ("empty", "cannot be opened: .*doesn't contain any data files"),
        ("bad", "cannot be opened: "),
        ("gone", "takes OWNER/NAME or an existing folder, not .*/gone"),
    ):
        with pytest.raises(BadRequest, match=words) as error:
            make_stream(f"hf:{tmp_path / name}", **SMALL)
        assert "\n" not in str(error.value)
    with pytest.raises(BadRequest, match="hf: is not the whole name: hf:OWNER/NAME"):
        make_stream("hf:")


def test_parts_of_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner/name").mkdir(parents=True)
    assert hub.parts_of("owner/name") == (str(tmp_path / "owner/name"), None)
    assert hub.parts_of("owner/name:plain") == (str(tmp_path / "owner/name"), "plain")
    assert hub.parts_of("owner/other") == ("owner/other", None)
    assert hub.parts_of("owner/other:plain") == ("owner/other", "plain")


# -- Repositories -----------------------------------------------------------------------------------------------------


@pytest.fixture
def birds(tmp_path, monkeypatch):
    """A repository on a hub of this machine."""
    with serving(Hub("owner/Some_Birds", write(tmp_path / "repository", usual(), "parquet"), COMMIT)) as served:
        reach(monkeypatch, served.address)
        yield served


def reach(monkeypatch, address):
    """Let the libraries ask there: they read HF_ENDPOINT only when they are imported."""
    for name in ("huggingface_hub.constants.ENDPOINT", "datasets.config.HF_ENDPOINT"):
        monkeypatch.setattr(name, address)
    template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)


def test_a_repository_is_fetched_once(birds, monkeypatch):
    stream = make_stream("hf:owner/Some_Birds", **SMALL)
    assert torch.equal(stream.train.x[5], as_bytes(5))
    assert hub.open_data("owner/Some_Birds").version == f"revision {COMMIT}"
    asked = len(birds.asked)
    for options in ({}, {"revision": COMMIT}):
        again = make_stream("hf:owner/Some_Birds", **SMALL, **options)
        assert torch.equal(again.train.x, stream.train.x)
    assert torch.equal(make_stream("hf:owner/Some_Birds:default", **SMALL).train.x, stream.train.x)
    assert len(birds.asked) == asked
    reach(monkeypatch, NOWHERE)
    assert len(make_stream("hf:owner/Some_Birds", **SMALL).train) == 16


def test_the_newest_version_in_the_cache_is_taken_or_the_one_asked_for(birds, monkeypatch):
    make_stream("hf:owner/Some_Birds", **SMALL)
    birds.commit = NEWER
    assert hub.open_data("owner/Some_Birds").version == f"revision {COMMIT}"  # the hub was not asked
    assert hub.open_data("owner/Some_Birds", "main").version == f"revision {NEWER}"
    reach(monkeypatch, NOWHERE)
    assert hub.open_data("owner/Some_Birds").version == f"revision {NEWER}"
    assert hub.open_data("owner/Some_Birds", COMMIT).version == f"revision {COMMIT}"


def test_a_run_notices_another_version(birds, tmp_path, monkeypatch, capsys):
    """environment.json has the commit, and workers find the data in the cache."""
    data = find("hf:owner/Some_Birds").data
    config = configure("hf:owner/Some_Birds", debias="none", **SMALL)
    (tmp_path / "run").mkdir()
    record_environment(tmp_path / "run", config)
    assert json.loads((tmp_path / "run/environment.json").read_text())["data"] == f"revision {COMMIT}"
    record_environment(tmp_path / "run", config)
    birds.commit = NEWER
    hub.open_data("owner/Some_Birds", "main")
    assert data.version(Columns()) == f"revision {NEWER}"
    with pytest.raises(
        BadRequest, match=r"--data hf:owner/Some_Birds is not what .*: it is revision a+, not revision b+;"
    ):
        record_environment(tmp_path / "run", config)


def test_configurations_are_named(birds, tmp_path, monkeypatch):
    card = "---\nconfigs:\n"
    for name, kind in (("small", "test"), ("large", "train")):
        card += f"- config_name: {name}\n  data_files:\n  - split: train\n    path: data/{kind}-*\n"
    birds.files["README.md"] = (card + "---\n").encode()
    with pytest.raises(BadRequest, match=r"Config name is missing.*small.*hf:owner/Some_Birds:CONFIG") as error:
        make_stream("hf:owner/Some_Birds", **SMALL)
    assert "\n" not in str(error.value)
    assert len(hub.open_data("owner/Some_Birds:small").splits["train"]) == 4
    assert len(hub.open_data("owner/Some_Birds:large").splits["train"]) == 16
    reach(monkeypatch, NOWHERE)
    assert len(hub.open_data("owner/Some_Birds:small").splits["train"]) == 4
    with pytest.raises(BadRequest, match="has several configurations, large, small: hf:owner/Some_Birds:large is one"):
        hub.open_data("owner/Some_Birds")


def test_what_the_hub_does_not_give_is_refused(birds, tmp_path, monkeypatch, capsys):
    for name, revision, words in (
        ("owner/other", None, "hf:owner/other is neither a folder here nor a public data set of the hub"),
        ("owner/Some_Birds", "v9", "--revision takes a revision of owner/Some_Birds; v9 is none"),
        ("owner/Some_Birds:odd", None, "'odd' not found.*hf:owner/Some_Birds:CONFIG"),
        ("owner", None, "takes OWNER/NAME or an existing folder, not owner"),
        ("a/b/c", None, "takes OWNER/NAME or an existing folder, not a/b/c"),
    ):
        with pytest.raises(BadRequest, match=words):
            hub.open_data(name, revision)
    birds.gated = True
    with pytest.raises(BadRequest, match="hf:owner/Some_Birds asks for your consent"):
        hub.open_data("owner/Some_Birds")


def test_waterbirds(tmp_path, monkeypatch, capsys):
    """As published on the hub: classes and places as numbers, three splits."""
    kinds = datasets.Features(
        {"image": datasets.Image(), "label": datasets.Value("int64"), "place": datasets.Value("int64")}
    )
    parts = {}
    for number, name in enumerate(("train", "validation", "test")):
        rows = {"image": [picture(10 * number + row) for row in range(4)], "label": [0, 0, 1, 1], "place": [0, 1, 0, 1]}
        parts[name] = datasets.Dataset.from_dict(rows, features=kinds)
    with serving(Hub("grodino/waterbirds", write(tmp_path / "repository", parts, "parquet"), COMMIT)) as served:
        reach(monkeypatch, served.address)
        assert main(["data", "list"]) == 0
        assert "waterbirds: the first run fetches grodino/waterbirds from the hub" in capsys.readouterr().out
        assert served.asked == []
        stream = make_stream("waterbirds", **SMALL)
        assert (stream.spec.classes, stream.tasks, list(stream.tests)) == (("0", "1"), ((0, 1),), ["test"])
        assert torch.equal(stream.tests["test"].x[3], as_bytes(23))
        groups = stream.tests["test"].groups
        assert {name: of.names for name, of in groups.items()} == {
            "place": ("0", "1"),
            "label*place": ("0 0", "0 1", "1 0", "1 1"),
        }
        assert groups["label*place"].codes.tolist() == [0, 1, 2, 3]
        assert make_stream("waterbirds", batch=2).spec.shape == (3, 224, 224)
        assert main(["data", "list"]) == 0
        assert "hf:grodino/waterbirds, in the cache" in capsys.readouterr().out


def test_without_a_network_one_line_says_what_to_do(tmp_path, monkeypatch, capsys):
    """Nothing listens there: the error is the real one."""
    reach(monkeypatch, NOWHERE)
    assert main(["run", "--data", "hf:owner/Some_Birds", *FLAGS, "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("droptop: hf:owner/Some_Birds could not be fetched: ")
    assert said.endswith("; a folder with its files works without a network: hf:FOLDER\n")
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(DownloadFailed, match="is not in the cache, and HF_HUB_OFFLINE keeps it from being fetched"):
        hub.open_data("owner/Some_Birds")


def test_without_the_library_one_line_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(BadRequest, match=r"hf:owner/Some_Birds takes .* pip install 'droptop\[hub\]'"):
        make_stream("hf:owner/Some_Birds", **SMALL)


def test_the_library_is_loaded_where_it_is_used_alone():
    code = "import sys, droptop.cli.run_flags, droptop.streams; sys.exit('datasets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
