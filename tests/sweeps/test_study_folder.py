"""A study as its folder has it: every cell by its files, and the cells that study.toml asks for by cells.json."""

import json
import os
import time

import pytest

from droptop.runs.folder import read_result
from droptop.sweeps import study_folder
from droptop.sweeps.study_folder import Cell, StudyFolder, record_cells, recorded_cells, requested_cells
from droptop.system.locks import folder_lock

from damage import without_checksums
from studies import write_study


def folder_of(copy, cell, seed=True):
    return copy / "runs" / cell.run / (f"seed-{cell.seed}" if seed else "")


def test_cells_are_read_from_their_folders(swept):
    study = StudyFolder(swept)
    assert sorted(study.cells) == sorted(requested_cells(swept))
    assert study.counts(study.cells) == {"done": 4, "waiting": 0, "failed": 0}
    assert study.counts([*study.cells, Cell("elsewhere", 0)])["waiting"] == 1  # a cell without a folder
    assert (study.running(), study.failures()) == ([], [])
    for cell, state in study.cells.items():
        assert state.tests == read_result(swept / "runs" / cell.run, cell.seed)["tests"]
    found = {
        (value["run"], value["seed"], value["figure"]): value for value in study.values() if value["test"] == "clean"
    }
    for cell, state in study.cells.items():
        value = found[(*cell, "A_avg")]
        assert value["value"] == state.tests["clean"]["A_avg"]
        assert value["debias"] == study.runs[cell.run].debias
        assert (value["learner.memory"], "first_seed" in value) == (20, False)
        assert (*cell, "matrix") not in found  # which is no number


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", '{"tests": {}}', '{"tests": [1]}', '{"tests": {"clean": 1}}'])
def test_a_damaged_result_is_no_result(swept_copy, damage):
    cell = sorted(requested_cells(swept_copy))[0]
    path = folder_of(swept_copy, cell) / "result.json"
    path.write_text(damage)
    study = StudyFolder(swept_copy)
    assert study.cells[cell].status == "waiting"
    assert study.counts(study.cells) == {"done": 3, "waiting": 1, "failed": 0}
    assert cell not in {Cell(value["run"], value["seed"]) for value in study.values()}
    assert path.read_text() == damage  # who reads changes nothing


def test_a_failed_cell_says_why_unless_it_is_done(swept_copy):
    one, other, *_ = sorted(requested_cells(swept_copy))
    for cell in (one, other):
        (folder_of(swept_copy, cell) / "failed.json").write_text(json.dumps({"error": "the loss is nan"}))
    (folder_of(swept_copy, one) / "result.json").unlink()
    study = StudyFolder(swept_copy)
    assert study.failures() == [(one, "the loss is nan")]
    assert study.cells[other].status == "done"
    (folder_of(swept_copy, one) / "failed.json").write_text("{")
    assert study.refresh(one) == ("failed", "waiting")


def test_running_cells_are_those_with_a_locked_folder(swept_copy):
    one, other, *_ = sorted(requested_cells(swept_copy))
    (folder_of(swept_copy, one) / "result.json").unlink()
    with folder_lock(folder_of(swept_copy, one)), folder_lock(folder_of(swept_copy, other)):
        assert StudyFolder(swept_copy).running() == [one]  # the other one is done
    assert StudyFolder(swept_copy).running() == []


def test_unreadable_run_folders_are_noted_and_left_out(swept_copy):
    name = sorted(requested_cells(swept_copy))[0].run
    (swept_copy / "runs" / name / "config.toml").write_text("seeds = ")
    notes = []
    study = StudyFolder(swept_copy, notes.append)
    assert [note.partition(":")[0] for note in notes] == [f"{swept_copy / 'runs' / name} cannot be read"]
    assert {cell.run for cell in study.cells} == study.runs.keys()
    assert name not in study.runs
    assert len(study.cells) == 2


def test_pace_is_the_mean_time_between_the_last_cells(swept_copy):
    """Four cells, 10, 10 and 20 seconds apart, the last one just now; nobody knows of one that lies hours back."""
    cells, now = sorted(requested_cells(swept_copy)), time.time()
    for cell, ago in zip(cells, (40, 30, 20, 0)):
        os.utime(folder_of(swept_copy, cell) / "result.json", (now - ago, now - ago))
    assert StudyFolder(swept_copy).pace() == pytest.approx(40 / 3)
    for shift in (-7200, 7200 + 3600):  # the second is of a clock that was set back since
        for cell in cells:
            path = folder_of(swept_copy, cell) / "result.json"
            os.utime(path, (path.stat().st_mtime + shift,) * 2)
        assert StudyFolder(swept_copy).pace() is None


def test_runs_are_named_by_what_sets_them_apart(swept, tmp_path):
    assert sorted(StudyFolder(swept).names().values()) == ["fashion er droptop", "fashion er none"]
    for name, lr in (("a", 0.1), ("b", 0.03)):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "config.toml").write_text(
            f'command = "run"\ndata = "fashion"\nmethod = "er"\ndebias = "none"\nseeds = 1\n[learner]\nlr = {lr}\n'
        )
    assert StudyFolder(tmp_path).names() == {"a": "fashion er none lr=0.1", "b": "fashion er none lr=0.03"}


def test_a_study_can_be_read_where_it_cannot_be_run(swept_copy):
    """On a machine without its GPU, or without its data."""
    without_checksums(swept_copy)  # which would tell that it ran on a CPU
    for path in [swept_copy / "study.toml", *swept_copy.glob("runs/*/config.toml")]:
        text = path.read_text().replace('device = "cpu"\n', "")
        path.write_text('device = "cuda"\nroot = "/nowhere/at/all"\n' + text)
    study = StudyFolder(swept_copy)
    assert study.counts(study.cells) == {"done": 4, "waiting": 0, "failed": 0}
    assert len(list(study.values())) > 0


# -- cells.json -------------------------------------------------------------------------------------------------------


def test_cells_are_noted_by_the_sweep(swept):
    noted = recorded_cells(swept)
    assert sorted(noted) == sorted(StudyFolder(swept).cells)
    assert noted == requested_cells(swept)


@pytest.mark.parametrize("damage", [None, "", "{", "[]", '{"study": "another"}', '{"cells": [["a"]]}'])
def test_a_missing_or_damaged_cells_json_is_ignored(swept_copy, damage):
    before, path = requested_cells(swept_copy), swept_copy / "cells.json"
    path.unlink()
    if damage is not None:
        path.write_text(damage)
    assert recorded_cells(swept_copy) is None
    assert requested_cells(swept_copy) == before


def test_an_edited_study_ignores_the_noted_cells(swept_copy):
    before = requested_cells(swept_copy)
    write_study(swept_copy / "study.toml", seeds=3)
    assert recorded_cells(swept_copy) is None
    assert sorted(requested_cells(swept_copy)) == sorted(
        [*before, *(Cell(run, 2) for run in {cell.run for cell in before})]
    )
    record_cells(swept_copy, before[:1])  # of this very file now: nobody reads it again
    assert requested_cells(swept_copy) == before[:1]


def test_without_the_methods_file_cells_are_those_of_the_folders(swept_copy):
    (swept_copy / "cells.json").unlink()
    write_study(swept_copy / "study.toml", method=["er", "/nowhere/mine.py"])
    with pytest.warns(UserWarning, match="there is no such file; cells are those that"):
        found = requested_cells(swept_copy)
    assert sorted(found) == sorted(study_folder.StudyFolder(swept_copy).cells)
