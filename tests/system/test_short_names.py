"""What titles call a stream, a method or a debiasing."""

import pytest

from droptop.system.short_names import short_name, short_names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("split-cifar10", "split-cifar10"),
        ("split-imagenet9:only_fg", "split-imagenet9:only_fg"),
        ("folder:/a/b/images", "folder:images"),
        ("folder:/a/b.py/images+more", "folder:images+more"),
        ("folder:/", "folder:/"),
        ("csv:/a/list.csv", "csv:list.csv"),
        ("hf:/a/birds:small", "hf:birds:small"),
        ("hf:owner/birds", "hf:owner/birds"),
        ("/x/my_debias.py", "my_debias"),
        ("my_debias.py", "my_debias"),
        ("/x/my_method.py:Mine", "my_method:Mine"),
        ("my_method.py:Mine", "my_method:Mine"),
        ("droptop+/x/b.py", "droptop+b"),
        ("/x/a.py:One+/y/b.py+mixstyle", "a:One+b+mixstyle"),
        ("/c++/x/b.py", "b"),
        ("/x/weights.safetensors", "weights.safetensors"),
        ("csv:/a/b/images.csv", "csv:images.csv"),
        ("object:compass", "compass"),
        ("none", "none"),
        ("a.python", "a.python"),
    ],
)
def test_the_last_part_of_a_path_is_its_name(text, expected):
    assert short_name(text) == expected


def test_equal_short_names_in_one_table_get_as_much_of_the_path_as_tells_them_apart():
    paths = ["folder:/a/one/images", "folder:/a/two/images", "folder:/b/two/images", "folder:/c/photos", "er"]
    assert list(short_names(paths).values()) == [
        "folder:one/images",
        "folder:a/two/images",
        "folder:b/two/images",
        "folder:photos",
        "er",
    ]


def test_a_file_that_is_called_as_a_built_in_name_is_told_from_it():
    assert short_names(["er", "/x/er.py", "/y/er.py"]) == {"er": "er", "/x/er.py": "x/er", "/y/er.py": "y/er"}


def test_names_that_no_path_can_tell_apart_stay_equal():
    assert short_names(["er.py", "er"]) == {"er.py": "er", "er": "er"}
