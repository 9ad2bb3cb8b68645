"""histogram: attention on the shortcut, on hand-made maps."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from droptop import BadRequest, Samples
from droptop.paper import find
from droptop.paper.cell_results import CellResults
from droptop.paper.recipes import histogram
from droptop.runs.config import configure
from droptop.runs.records import Maps, Moment

from ..invented import quick_scope


def test_attention_counts_the_classes_seen_by_then():
    covered = np.zeros((4, 4, 5))
    covered[:, 0, 0] = 1
    on, off = covered.copy(), -covered
    maps = Maps(
        np.zeros((0, 1, 1, 3)),
        ["a", "b", "c", "d"],
        np.array([0, 1, 2, 3]),
        covered,
        [
            Moment(3, 0, np.concatenate([on[:2], off[2:]]), None),  # at first only classes 0 and 1 are seen
            Moment(6, 1, np.concatenate([on[:1], off[1:]]), None),
        ],
    )
    results = histogram.attended(None, maps, [[0, 1], [2, 3]], seed=0)
    assert results.steps == [3, 6]
    assert results.ranks[:, -1].tolist() == [100, 25]
    assert results.chance == pytest.approx([5, 5])
    arms = {arm: {0: results, 1: results} for arm in ("none", "droptop")}
    recipe = find("histogram")
    table = histogram.table(CellResults(recipe, quick_scope(recipe), Path()), "fashion-sticker", arms)
    assert [str(cell) for cell in table.rows[0]] == [
        "3",
        "5.0 ± 0.0",
        "100.0 ± 0.0",
        "+95.0",
        "100.0 ± 0.0",
        "+0.0 (+0.0 to +0.0), p = 1.000",
        "2",
    ]


def test_seeds_without_maps_are_named(tmp_path, monkeypatch):
    """As in a folder that another recipe filled: the first seed has a few images, one of them has none."""
    recipe = find("histogram")
    results = CellResults(recipe, quick_scope(recipe), tmp_path)
    covered = np.zeros((4, 4, 5))
    covered[:, 0, 0] = 1
    few = Maps(
        np.zeros((0, 1, 1, 3)),
        list("abcd"),
        np.array([0, 1, 2, 3]),
        covered,
        [Moment(3, 0, covered, None), Moment(6, 1, covered[:3], None)],
    )  # a map less: only the first three count
    all_of = histogram.Attended(histogram.TRUTH, [3, 6], np.zeros((2, 20)), np.zeros(2))
    fewer = histogram.attended(None, few, [[0, 1], [2, 3]], seed=0)
    assert (fewer.images, fewer.ranks[:, -1].tolist()) == (3, [100, 100])
    monkeypatch.setattr(CellResults, "by_seed", lambda self, cell: dict.fromkeys(range(2 + (cell["debias"] == "none"))))
    table = histogram.table(results, "fashion-sticker", {"none": {0: fewer}, "droptop": {0: all_of, 1: all_of}})
    assert "** ER: no maps of seed 1, 2; ER: maps of 3 images of seed 0. Cells" in table.notes[-1]
    empty = histogram.table(results, "fashion-sticker", {"none": {}, "droptop": {0: all_of, 1: all_of}})
    assert empty.rows == []
    assert "ER: no maps of seed 0, 1, 2." in empty.notes[-1]
    whole = histogram.table(
        results,
        "fashion-sticker",
        {"none": dict.fromkeys(range(3), all_of), "droptop": dict.fromkeys(range(2), all_of)},
    )
    assert len(whole.notes) == 1


def test_the_background_is_what_foregrounds_leave_black(monkeypatch):
    x = torch.zeros(4, 3, 4, 4, dtype=torch.uint8)
    x[:, 1, :2] = 200  # the upper half is foreground
    x[3] = 5  # nearly black, as a JPEG has it
    stream = SimpleNamespace(tasks=((1, 0),), tests={"only_fg": Samples(x, torch.tensor([0, 0, 1, 1]))})
    monkeypatch.setattr(histogram, "build_stream", lambda config, seed: stream)
    maps = Maps(np.zeros((0, 1, 1, 3)), [], np.array([1, 0, 1]), None, [Moment(1, 0, np.zeros((3, 2, 2)), None)])
    covered = histogram.background(configure("fashion"), maps, 0)  # rows 2, 0, 3: a class each in turn
    assert covered.tolist() == [[[0, 0], [1, 1]], [[0, 0], [1, 1]], [[1, 1], [1, 1]]]
    with pytest.raises(BadRequest, match="not those of the originals"):
        histogram.background(configure("fashion"), maps._replace(labels=np.array([0, 1, 0])), 0)
    stream.tests = {}
    with pytest.raises(BadRequest, match="nobody knows where the shortcut of fashion is"):
        histogram.background(configure("fashion"), maps, 0)
