"""`droptop status` of studies, runs and comparisons."""

import pytest

from droptop.cli import main
from droptop.system.locks import folder_lock

from toys import droptop


def test_status_counts_the_cells_of_a_study(swept):
    done = droptop("status", swept)
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 done, 0 running, 0 waiting, 0 failed; no sweep is at work" in done.stdout


def test_a_run_of_a_study_has_a_line_per_seed(swept, capsys):
    assert main(["status", str(next(swept.glob("runs/*")))]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "done" in line]
    assert len(lines) == 2
    assert all(line.split()[-2] == "4" for line in lines)  # steps, before the table's edge


def test_seeds_are_done_running_stopped_or_waiting(comparison, swept_copy, capsys):
    """By what their folders hold: a result, a lock that somebody holds, metrics alone, or nothing.

    One whose result is gone, which its manifest knows of, is damaged.
    """
    run = next(swept_copy.glob("runs/*droptop*"))
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace("seeds = 2\n", "seeds = 4\n"))
    (run / "seed-1/result.json").unlink()
    with folder_lock(run / "seed-2"):
        assert main(["status", str(run)]) == 0
    said = capsys.readouterr().out
    assert [word for word in said.split() if word in ("done", "running", "damaged", "stopped", "waiting")] == [
        "done",
        "damaged",
        "running",
        "waiting",
    ]
    assert main(["status", str(comparison[0])]) == 0
    assert capsys.readouterr().out.count("done") == 4


def test_a_study_whose_file_changed_counts_the_cells_it_asks_for_now(swept_copy, capsys):
    study = swept_copy / "study.toml"
    study.write_text(study.read_text().replace("seeds = 2", "seeds = 3"))
    assert main(["status", str(swept_copy)]) == 0
    assert "4 done, 0 running, 2 waiting, 0 failed" in capsys.readouterr().out


def test_a_run_folder_that_cannot_be_read_is_noted(swept_copy, capsys):
    damaged = next(swept_copy.glob("runs/*none*/config.toml"))
    damaged.write_text("command = ")
    assert main(["status", str(swept_copy)]) == 0
    said = capsys.readouterr()
    assert "2 done, 0 running, 2 waiting, 0 failed" in said.out
    assert said.err.startswith(f"note: {damaged.parent} cannot be read: {damaged} is not TOML")


@pytest.mark.parametrize("what", ["status", "results"])
def test_an_empty_folder_is_refused(what, tmp_path, capsys):
    assert main([what, str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
