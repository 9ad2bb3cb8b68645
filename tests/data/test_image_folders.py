import os

import pytest

from droptop import BadRequest
from droptop.data.image_folders import read_tree

from pictures import picture, save, write_tree


def test_classes_and_images_are_sorted(tmp_path):
    tree = write_tree(tmp_path, {"train": {"b": 11, "a": 2}, "test": {"a": 1, "b": 1}})
    save(picture(0), tree / "train/a/Z.JPEG")
    save(picture(0), tree / "train/a/y.WebP")
    for other in ("train/a/notes.txt", "train/a/.hidden.png", "train/readme.md", "train/.ipynb_checkpoints/x.png"):
        (tree / other).parent.mkdir(exist_ok=True)
        (tree / other).write_text("not an image")
    train, test, _ = read_tree(tree)
    assert train.classes == test.classes == ("a", "b")
    assert train.names[:5] == ("train/a/0.png", "train/a/1.png", "train/a/Z.JPEG", "train/a/y.WebP", "train/b/0.png")
    assert train.labels == (0,) * 4 + (1,) * 11
    assert (test.names, test.y.tolist()) == (("test/a/0.png", "test/b/0.png"), [0, 1])
    assert (train.path(2), train.stem(2)) == (tree / "train/a/Z.JPEG", "train/a/Z")
    assert train.rows_of == [[0, 1, 2, 3], list(range(4, 15))]


def test_images_with_unknown_endings_are_noted(tmp_path):
    tree = write_tree(tmp_path, {"train": {"a": 2}, "test": {"a": 1}})
    for name in ("x.bmp", "y.TIF", "z.tif", "paper.pdf"):  # the last is no image that anybody could read
        (tree / "train/a" / name).write_bytes(b"")
    with pytest.warns(UserWarning, match="left out") as said:
        train, _, _ = read_tree(tree)
    assert [str(one.message) for one in said] == [
        f"{tree}/train/a: 3 images are left out, since they end in .bmp, .tif and not in .jpg, .jpeg, .png, .webp"
    ]
    assert len(train) == 2


def test_test_is_preferred_to_val(tmp_path):
    tree = write_tree(tmp_path, {"train": {"a": 1}, "val": {"a": 2}})
    assert read_tree(tree)[1].names[0] == "val/a/0.png"
    write_tree(tmp_path, {"test": {"a": 3}})
    assert len(read_tree(tree)[1]) == 3


def test_a_fifth_of_each_class_is_held_out(tmp_path):
    tree = write_tree(tmp_path, {"train": {"a": 40, "b": 10, "c": 2}})
    train, test, _ = read_tree(tree)
    assert (train.y.bincount().tolist(), test.y.bincount().tolist()) == ([32, 8, 1], [8, 2, 1])
    assert not set(train.names) & set(test.names)
    assert set(test.names) != set(sorted(test.names + train.names)[:8])  # not just the first ones
    assert read_tree(tree) == (train, test, {})
    save(picture(99), tree / "train/a/one-more.png")
    again = read_tree(tree)[1]
    assert len(set(again.names) - set(test.names)) <= 1  # the others stay where they were


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ({}, "has no folder train"),
        ({"test": {"a": 1}}, "has no folder train"),
        ({"train": {}}, "train holds no images"),
        ({"train": {"a": 1, "b": 0}}, "train/b holds no images"),
        ({"train": {"a": 1}, "test": {}}, "test holds no images"),
        ({"train": {"a": 1, "b": 1}, "test": {"a": 1}}, "b only in .*train"),
        ({"train": {"a": 1, "b": 1}, "val": {"a": 1, "c": 1}}, "b only in .*train; c only in .*val"),
        ({"train": {"a": 5, "b": 1}}, "train/b holds one image"),
    ],
)
def test_incomplete_folders_are_refused(tmp_path, parts, complaint):
    for part, classes in parts.items():
        for name in ["", *classes]:
            (tmp_path / part / name).mkdir(parents=True, exist_ok=True)
    with pytest.raises(BadRequest, match=complaint) as error:
        read_tree(write_tree(tmp_path, parts))
    assert "\n" not in str(error.value)


def test_files_in_place_of_folders_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadRequest, match="file is not a folder"):
        read_tree(tmp_path / "file")
    with pytest.raises(BadRequest, match="nowhere is not an existing folder"):
        read_tree(tmp_path / "nowhere")


def test_names_that_are_not_utf_8_are_refused(tmp_path):
    tree = write_tree(tmp_path / "tree", {"train": {"a": 2, "b": 2}})
    odd = os.fsencode(tree / "train/a") + b"/caf\xe9.png"
    os.rename(os.fsencode(tree / "train/a/0.png"), odd)
    with pytest.raises(BadRequest, match=r"not in UTF-8: b'caf\\xe9\.png'"):
        read_tree(tree)
    os.rename(odd, os.fsencode(tree / "train/a/caf\u00e9 \U0001f4f7.png"))
    assert len(read_tree(tree)[0]) == 2
