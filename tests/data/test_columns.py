import pytest

from droptop import BadRequest
from droptop.data.columns import LABELS, PATHS, SPLITS, Splits, classes_of, column, needed, splits_of


def test_columns_are_found_by_usual_names_or_named():
    assert needed("image", None, PATHS, ["id", "Filename", "path2"], "x.csv") == "Filename"
    assert needed("label", None, LABELS, ["y", "label"], "x.csv") == "label"  # the more usual one
    assert needed("label", "y", LABELS, ["y", "label"], "x.csv") == "y"
    assert column("split", None, SPLITS, ["y", "label"], "x.csv") is None
    with pytest.raises(BadRequest, match=r"x\.csv has no column of labels .* it has id, a: name one with --label-col"):
        needed("label", None, LABELS, ["id", "a"], "x.csv")
    with pytest.raises(BadRequest, match=r"--label-column takes a column of x\.csv: id, kind; not kinds; did"):
        needed("label", "kinds", LABELS, ["id", "kind"], "x.csv")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["test", "Training"], Splits("Training", {"test": "test"})),
        (["train", "validation"], Splits("train", {"test": "validation"})),
        (["train", "test-no-logo", "test"], Splits("train", {"test": "test", "no-logo": "test-no-logo"})),
        (["train", "test_drawn"], Splits("train", {"drawn": "test_drawn"})),
        (["train"], Splits("train", {})),
        (["0", "1"], Splits("0", {"test": "1"})),
    ],
)
def test_splits_by_their_usual_names(names, expected):
    assert splits_of(names, None, None, "x.csv") == expected


def test_what_is_left_out_is_said():
    with pytest.warns(UserWarning, match=r"^x\.csv: split 1 left out; --test-splits"):
        assert splits_of(["0", "1", "2"], None, None, "x.csv") == Splits("0", {"test": "2"})
    with pytest.warns(UserWarning, match="splits 3, 1 left out"):  # numbers that are not those of WILDS
        assert splits_of(["3", "1", "train"], None, None, "x.csv") == Splits("train", {})


def test_splits_that_are_named():
    assert splits_of(["a", "b", "test"], "a", "test, b", "x.csv") == Splits("a", {"test": "test", "b": "b"})
    for train, tests, words in (
        (None, None, "has no split train but a, b, test: name one with --train-split"),
        ("c", None, "--train-split takes a split of x.csv: a, b, test; not c"),
        ("a", "b,", "--test-splits takes a split of x.csv: a, b, test; not an empty name"),
        ("a", "a", "--test-splits takes splits other than a, each once"),
        ("a", "b,b", "--test-splits takes splits other than a, each once"),
    ):
        with pytest.raises(BadRequest, match=words):
            splits_of(["a", "b", "test"], train, tests, "x.csv")


def test_classes_are_in_the_order_of_numbers_where_they_are_numbers():
    assert classes_of(["10", "9", "10", "-1"]) == ("-1", "9", "10")
    assert classes_of(["10", "9", "b"]) == ("10", "9", "b")
    assert classes_of(["1", "1.0"]) == ("1", "1.0")
