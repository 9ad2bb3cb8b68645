"""groups.csv beside a folder of images: its rows find their images, and what does not fit is refused in a line."""

import csv
import json
import shutil
import warnings

import pytest
import torch

from droptop import BadRequest, make_stream
from droptop.data import folder
from droptop.types import groups_of

from pictures import write_tree

PARTS = {"train": {"a": 8, "b": 8}, "test": {"a": 6, "b": 6}, "test-far": {"a": 5, "b": 5}}
SMALL = {"image_size": 12, "batch": 4}
RUN = "--image-size 12 --batch 4 --width 4 --memory 20 --split a/b --seeds 1 --threads 1 --maps 0 --eval-every 3"


def background(name):
    return "water" if int(name[-5]) % 2 else "land"


def write_groups(tree, parts=("test", "test-far"), rows=None, header=("path", "background"), **options):
    """A row per image of some parts, or these rows."""
    if rows is None:
        names = [str(path.relative_to(tree)) for part in parts for path in sorted((tree / part).rglob("*.png"))]
        rows = [(name, background(name)) for name in names]
    with (tree / "groups.csv").open("w", newline="", **options) as file:
        csv.writer(file).writerows([header, *rows])
    return rows


@pytest.fixture
def tree(tmp_path):
    return write_tree(tmp_path / "tree", PARTS)


def named(groups):
    return [groups.names[code] for code in groups.codes]


@pytest.mark.parametrize("in_memory_mb", [0, 64])
def test_every_test_image_has_its_groups(tree, in_memory_mb):
    rows = write_groups(tree)
    write_groups(tree, rows=[(name.replace("/", "\\"), place) for name, place in reversed(rows)], encoding="utf-8-sig")
    stream = make_stream(f"folder:{tree}", **SMALL, in_memory_mb=in_memory_mb)
    for test, part in (("test", "test"), ("far", "test-far")):
        expected = [background(path.name) for path in sorted((tree / part).rglob("*.png"))]
        assert named(groups_of(stream.tests[test])["background"]) == expected
        read = stream.tests[test][torch.tensor([3, 0])]  # and where rows are read from a disk
        assert named(read.groups["background"]) == [expected[3], expected[0]]
    assert groups_of(stream.train) == {}


def test_training_images_that_are_kept_back_have_groups(tree):
    write_groups(tree, ("train", "test", "test-far"))
    stream = make_stream(f"folder:{tree}", **SMALL, hold_out=50)
    held = stream.held.nonzero()[:, 0].tolist()
    names = [path.name for path in sorted((tree / "train").rglob("*.png"))]
    assert named(groups_of(stream.tests["held-out"])["background"]) == [background(names[row]) for row in held]


def test_masks_have_the_groups_of_their_images(tmp_path):
    tree = write_tree(tmp_path / "tree", {"train": {"a": 2, "b": 2}, "test": {"a": 2, "b": 2}}, masks=True)
    for part in ("train", "test"):
        (tree / "original" / part).rename(tree / part)
    (tree / "original").rmdir()
    write_groups(tree, ("test",))
    stream = make_stream(f"folder:{tree}", image_size=12, batch=2)
    assert {tuple(named(groups_of(test)["background"])) for test in stream.tests.values()} == {("land", "water") * 2}


def test_a_group_that_is_seen_in_testing_only_is_noted(tree):
    rows = write_groups(tree, ("train", "test", "test-far"))
    snow = [(name, "snow" if name.startswith("test-far") else place) for name, place in rows]
    write_groups(tree, rows=snow)
    with pytest.warns(UserWarning, match="no training image is in 1 of the groups by background: snow$") as said:
        make_stream(f"folder:{tree}", **SMALL)
    assert len(said) == 1
    write_groups(tree)  # none of training images: there is nothing to compare with
    with warnings.catch_warnings():
        make_stream(f"folder:{tree}", **SMALL)


GOOD = [
    (f"{part}/{name}/{n}.png", "x") for part in ("test", "test-far") for name in "ab" for n in range(PARTS[part][name])
]


@pytest.mark.parametrize(
    ("rows", "header", "says"),
    [
        (GOOD[1:], ("path", "place"), r"groups\.csv has no row for test/a/0\.png: every test image needs one"),
        (GOOD[3:], ("path", "place"), r"no row for test/a/0\.png, and for 2 more: every test image needs one"),
        (GOOD[:-1], ("path", "place"), r"no row for test-far/b/4\.png: every"),
        ([*GOOD, ("test/a/99.png", "x")], ("path", "place"), r"line 24, names test/a/99\.png, which is no file of"),
        ([*GOOD, ("u.png", "x"), ("v.png", "x")], ("path", "place"), r"names u\.png, .*; 1 more rows? do"),
        ([*GOOD, GOOD[2]], ("path", "place"), r"line 24, names test/a/2\.png again, which stands in line 4"),
        ([*GOOD[:2], (GOOD[2][0], " "), *GOOD[3:]], ("path", "place"), r"groups\.csv, line 4, has no place"),
        ([*GOOD[:2], ("", "x")], ("path", "place"), r"line 4, names nothing"),
        (GOOD, ("file", "place"), r"takes a column path and one or more of groups, not file, place"),
        ([(name,) for name, _ in GOOD], ("path",), r"takes a column path and one or more of groups, not path"),
        (GOOD, ("path", "a=b"), r"columns of groups have names without =, not a=b"),
        ([(*row, "y") for row in GOOD], ("path", "place", "place"), "names every column, each another"),
        ([*GOOD, ("test/a/0.png",)], ("path", "place"), "line 24, has 1 cells, and the first line 2"),
        ([], ("path", "place"), "has no rows below its first line"),
    ],
)
def test_a_file_of_groups_that_does_not_fit_is_refused(tree, rows, header, says):
    write_groups(tree, rows=rows, header=header)
    for use in (lambda: make_stream(f"folder:{tree}", **SMALL), lambda: folder.check(str(tree))):
        with pytest.raises(BadRequest, match=says) as caught:
            use()
        assert "\n" not in str(caught.value)


def metrics(run):
    return [json.loads(line) for line in (run / "seed-0/metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def compared(tree, here, tmp_path, monkeypatch):
    """A comparison on a folder with groups, and its plain arm on the same without."""
    monkeypatch.setenv("COLUMNS", "200")  # no name is broken over lines
    asked = ("--data", f"folder:{tree}", *RUN.split(), "--out")
    assert here("run", "--debias", "none", *asked, tmp_path / "plain").returncode == 0
    write_groups(tree, rows=[(*row, "phone") for row in write_groups(tree)], header=("path", "background", "camera"))
    done = here("compare", *asked, tmp_path / "grouped")
    assert done.returncode == 0, done.stderr
    return tmp_path, done.stdout


def test_groups_are_counted_and_change_nothing_else(compared, tree, here):
    place, said = compared
    with_groups, without = metrics(place / "grouped/none"), metrics(place / "plain")
    assert "groups" not in (place / "plain/seed-0/metrics.jsonl").read_text()
    assert [{key: line[key] for key in line if key != "groups"} for line in with_groups] == without
    evaluated = [line for line in with_groups if "eval" in line]
    assert len(evaluated) > 2  # also between the ends of tasks
    for line in evaluated:
        for test, columns in line["groups"].items():
            for groups in columns.values():
                for count in ("n", "correct"):
                    summed = [sum(cells) for cells in zip(*(tally[count] for tally in groups.values()))]
                    assert summed == line["eval"][test]["all"][count]
    comparison = json.loads((place / "grouped/compare.json").read_text())
    old = json.loads((place / "plain/summary.json").read_text())["tests"]
    for test in ("test", "far"):
        figures, last = comparison["arms"]["none"]["tests"][test], evaluated[-1]["groups"][test]["background"]
        assert {name: figures[name] for name in old[test]} == old[test]
        shares = {name: 100 * sum(tally["correct"]) / sum(tally["n"]) for name, tally in last.items()}
        assert {name: figures[f"background={name}"][0] for name in shares} == pytest.approx(shares)
        assert figures["worst background"][0] == pytest.approx(min(shares.values()))
        assert figures["gap background"][0] == pytest.approx(max(shares.values()) - min(shares.values()))
    assert comparison["effects"]["droptop"]["far"]["gap background"]["diff"] is not None
    for words in ("worst background", "gap background", "test: worst camera"):
        assert words in said
    assert "background=land" not in said  # the page has them
    pytest.importorskip("altair")
    for folder_of, has in (("grouped", True), ("plain", False)):
        assert here("report", place / folder_of).returncode == 0
        page = (place / folder_of / "report.html").read_text()
        assert [words in page for words in ('id="groups"', "Accuracy on far by background")] == [has, has]


def test_a_run_resumes_with_the_groups_that_it_began_with(compared, tree, here):
    place, _ = compared
    shutil.rmtree(place / "grouped/droptop/seed-0")
    before = (place / "grouped/compare.json").read_bytes()
    assert here("resume", place / "grouped").returncode == 0
    assert (place / "grouped/compare.json").read_bytes() == before
    (tree / "groups.csv").write_text((tree / "groups.csv").read_text().replace("phone", "lens"))
    for folder_of in ("plain", "grouped"):  # which had no groups, and others
        refused = here("resume", place / folder_of, "--seeds", "2")
        assert refused.returncode == 2
        assert "is not what" in refused.stderr
