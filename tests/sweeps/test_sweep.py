"""A sweep runs every cell once, and what is missing of a study later."""

import json
import tomllib
from pathlib import Path

import pytest

from droptop import BadRequest
from droptop.errors import WorkerDied
from droptop.sweeps.local import local
from droptop.sweeps.sweep import sweep
from droptop.training.seed_run import seed_run
from droptop.training.workers import Failure

from studies import Silent, digests, write_study


def run(job):
    seed_run(job, lambda progress: None, lambda text: None)()


def test_config_notes_the_kappa_0_that_is_run_and_older_folders_go_on(tmp_path, monkeypatch):
    def noted(out):
        return {
            path.parent.name: tomllib.loads(path.read_text())["droptop"]["kappa_0"]
            for path in out.glob("runs/*/config.toml")
        }

    study, old, new, watcher = tmp_path / "study.toml", tmp_path / "old", tmp_path / "new", Silent()
    options = {"debias": "droptop", "gamma": [2.5, 10.0]}
    with monkeypatch.context() as before:
        before.setattr("droptop.runs.config.Config.with_effective_kappa_0", lambda config: config)
        assert sweep(write_study(study, seeds=1, **options), old, local, watcher)["done"] == 2
    watcher = Silent()
    assert sweep(write_study(study, **options), old, local, watcher)["done"] == 4
    assert [seed for _, seed in watcher.cells] == [1, 1]
    assert sweep(study, new, local, watcher)["done"] == 4
    assert sorted(noted(old).values()) == [5.0, 5.0]
    assert sorted(noted(new).values()) == [2.5, 5.0]
    assert noted(old).keys() == noted(new).keys()
    assert digests(old) == digests(new)
    assert sweep(None, new, local, watcher)["done"] == 4  # and they go on
    with pytest.raises(BadRequest, match=r"--kappa-0 takes a percentage up to gamma, 2\.5, not 4\.0"):
        sweep(write_study(study, **options, kappa_0=4.0), tmp_path / "refused", local, watcher)
    assert not (tmp_path / "refused").exists()


def test_a_second_sweep_runs_nothing_and_a_larger_study_only_its_new_cells(swept, swept_copy, tmp_path, here):
    before = digests(swept)
    assert len(before) == 8
    watcher = Silent()
    assert sweep(None, swept, local, watcher) == {"done": 4, "waiting": 0, "failed": 0}
    assert watcher.cells == []
    more = write_study(tmp_path / "more.toml", seeds=3)
    assert sweep(more, swept_copy, local, watcher) == {"done": 6, "waiting": 0, "failed": 0}
    assert sorted(seed for _, seed in watcher.cells) == [2, 2]
    assert {name: digest for name, digest in digests(swept_copy).items() if name in before} == before
    assert all(len(json.loads(path.read_text())["seeds"]) == 3 for path in swept_copy.glob("runs/*/summary.json"))
    fewer = write_study(tmp_path / "fewer.toml", seeds=1, debias="none")  # the others stay, and do not count
    assert sweep(fewer, swept_copy, local, watcher) == {"done": 1, "waiting": 0, "failed": 0}
    assert "5 more cells are of earlier versions" in here("status", swept_copy).stdout


def test_a_cell_with_a_damaged_result_runs_again(swept_copy):
    before = digests(swept_copy)
    damaged = next(swept_copy.glob("runs/*/seed-1/result.json"))
    damaged.write_text(damaged.read_text()[:40])
    watcher = Silent()
    assert sweep(None, swept_copy, local, watcher) == {"done": 4, "waiting": 0, "failed": 0}
    assert (watcher.began, len(watcher.cells)) == (3, 1)
    assert digests(swept_copy) == before


def test_cells_done_before_their_pack_failed_count_as_done(tmp_path):
    """As on Ray, where a pack comes back as one."""
    study = write_study(tmp_path / "study.toml", debias="none", seeds=3)

    def engine(packs, driver):
        jobs = [pack[0] for pack in packs]
        for job in jobs[:2]:
            run(job)
        again = driver.retry(jobs, Failure(WorkerDied, "lost", "lost"))
        assert again == [[jobs[2]]]
        local(again, driver)

    assert sweep(study, tmp_path / "out", engine, Silent()) == {"done": 3, "waiting": 0, "failed": 0}


def test_cells_of_a_lost_pack_that_had_not_begun_are_retried_together(tmp_path):
    study = write_study(tmp_path / "study.toml", debias="none", seeds=4)

    def engine(packs, driver):
        jobs = [pack[0] for pack in packs]
        lost = Failure(WorkerDied, "lost", "lost")
        assert driver.retry(jobs, lost) == [[job] for job in jobs]  # who is to blame?
        run(jobs[0])
        (jobs[1].run / "seed-1").mkdir()
        again = driver.retry(jobs, lost)
        assert again == [[jobs[1]], jobs[2:]]
        local(again, driver)

    assert sweep(study, tmp_path / "out", engine, Silent()) == {"done": 4, "waiting": 0, "failed": 0}


def test_a_sweep_refuses_a_folder_that_cannot_be_written(tmp_path):
    study = write_study(tmp_path / "study.toml")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadRequest, match="is a file"):
        sweep(study, tmp_path / "file", local, Silent())
    with pytest.raises(BadRequest, match="can be written"):
        sweep(study, Path("/proc/nothing/here"), local, Silent())
