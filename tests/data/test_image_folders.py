import os
import warnings

import pytest

from droptop import BadRequest
from droptop.data.image_folders import read_tree

from pictures import picture, save, write_tree


def test_classes_and_images_are_sorted(tmp_path):
    tree = write_tree(tmp_path, {"train": {"b": 11, "a": 2}, "test": {"a": 1, "b": 1}})
    save(picture(0), tree / "train/a/Z.JPEG")
    save(picture(0), tree / "train/a/y.WebP")
    for other in ("train/a/notes.txt", "train/readme.md"):
        (tree / other).parent.mkdir(exist_ok=True)
        (tree / other).write_text("not an image")
    train, test, _ = read_tree(tree)
    assert train.classes == test.classes == ("a", "b")
    assert train.names[:5] == ("train/a/0.png", "train/a/1.png", "train/a/Z.JPEG", "train/a/y.WebP", "train/b/0.png")
    assert train.labels == (0,) * 4 + (1,) * 11
    assert (test.names, test.y.tolist()) == (("test/a/0.png", "test/b/0.png"), [0, 1])
    assert (train.path(2), train.stem(2)) == (tree / "train/a/Z.JPEG", "train/a/Z")
    assert train.rows_of == [[0, 1, 2, 3], list(range(4, 15))]


def said_of(tree):
    """What is said of a folder, without its name, a line each."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        parts = read_tree(tree)
    lines = [str(one.message) for one in said]
    assert all(line.startswith(f"{tree}: ") and "\n" not in line for line in lines)
    return [line.removeprefix(f"{tree}: ") for line in lines], parts


def put(tree, *names):
    """Files of a few bytes."""
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(b"not an image")


def test_images_with_unknown_endings_are_noted(tmp_path):
    tree = write_tree(tmp_path, {"train": {"a": 2, "b": 2}, "test": {"a": 1, "b": 1}})
    put(
        tree, "train/a/x.bmp", "train/b/y.TIF", "test/a/z.tif", "train/a/paper.pdf"
    )  # nobody reads the last as an image
    lines, (train, *_) = said_of(tree)
    assert lines == ["left out, images that do not end in .jpg, .jpeg, .png, .webp: 3, such as train/a/x.bmp"]
    assert len(train) == 4


def test_what_is_left_out_is_said_in_a_line_per_reason(tmp_path):
    tree = write_tree(tmp_path, {"train": {"a": 2, "b": 3}, "test": {"a": 2, "b": 2}, "test-far": {"a": 2, "b": 2}})
    expected = read_tree(tree)
    put(tree, "train/a/deep/1.jpg", "train/a/deep/deeper/2.PNG", "test-far/b/deep/3.png", "train/b/deep/notes.txt")
    put(tree, "train/a/.hidden.png", "train/.ipynb_checkpoints/x.png", "test/.DS_Store", "train/a/deep/._1.jpg")
    put(tree, "train/__MACOSX/a/._0.png", "train/loose.png", "train/readme.md", "train/a/notes.txt")
    (tree / "__MACOSX").mkdir()
    (tree / "train/b/gone.png").symlink_to("nowhere.png")
    (tree / "test/a/round.png").symlink_to("round.png")
    (tree / "train/c").symlink_to("nowhere")  # a class that is not there
    (tree / "train/b/link.png").symlink_to(tree / "train/a/0.png")
    (tree / "train/b/folder.png").mkdir()
    lines, (train, test, more) = said_of(tree)
    assert sorted(lines) == [
        "left out, folders __MACOSX: 2, such as train/__MACOSX",
        "left out, hidden files and folders: 3, such as train/.ipynb_checkpoints",
        "left out, images in folders below those of classes: 3, such as train/a/deep/1.jpg",
        "left out, images outside of the folders of classes: 1, such as train/loose.png",
        "left out, links that lead nowhere: 3, such as train/c",
    ]
    assert train.names == (*expected[0].names, "train/b/link.png")
    assert (test, more) == expected[1:]


def test_a_class_of_nested_images_alone_is_refused_with_their_place(tmp_path):
    tree = write_tree(tmp_path, {"train": {"a": 2, "b": 0}})
    put(tree, "train/b/2024/1.jpg", "train/b/2025/2.jpg")
    with pytest.raises(BadRequest, match=r"train/b holds no images \(.*\); 2 lie deeper, such as 2024/1\.jpg$"):
        read_tree(tree)


def test_classes_of_one_training_image_are_said(tmp_path):
    tree = write_tree(tmp_path, {"train": {"a": 2, "b": 1, "c": 1}, "val": {"a": 1, "b": 1, "c": 1}})
    assert said_of(tree)[0] == ["classes with one training image: 2, such as b"]
    tree = write_tree(tmp_path / "held", {"train": {"a": 9, "b": 2}})  # one is held out
    assert said_of(tree)[0] == ["classes with one training image: 1, such as b"]


def test_a_test_set_of_another_name_is_said_where_one_is_held_out(tmp_path):
    tree = write_tree(tmp_path, {"train": {"a": 5, "b": 5}, "Test": {"a": 1, "b": 1}, "validation": {"a": 1, "b": 1}})
    assert said_of(tree)[0] == [
        "left out, a fifth of each class being held out for want of test or val: folders: 2, such as Test"
    ]
    (tree / "Test").rename(tree / "test")
    assert said_of(tree)[0] == []


def test_test_is_preferred_to_val(tmp_path):
    tree = write_tree(tmp_path, {"train": {"a": 2}, "val": {"a": 2}})
    assert read_tree(tree)[1].names[0] == "val/a/0.png"
    write_tree(tmp_path, {"test": {"a": 3}})
    assert len(read_tree(tree)[1]) == 3


def test_a_fifth_of_each_class_is_held_out(tmp_path):
    tree = write_tree(tmp_path, {"train": {"a": 40, "b": 10, "c": 3}})
    train, test, _ = read_tree(tree)
    assert (train.y.bincount().tolist(), test.y.bincount().tolist()) == ([32, 8, 2], [8, 2, 1])
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
    tree = write_tree(tmp_path / "tree", {"train": {"a": 3, "b": 3}})
    odd = os.fsencode(tree / "train/a") + b"/caf\xe9.png"
    os.rename(os.fsencode(tree / "train/a/0.png"), odd)
    with pytest.raises(BadRequest, match=r"not in UTF-8: b'caf\\xe9\.png'"):
        read_tree(tree)
    os.rename(odd, os.fsencode(tree / "train/a/caf\u00e9 \U0001f4f7.png"))
    assert len(read_tree(tree)[0]) == 4
