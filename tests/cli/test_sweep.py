"""`droptop sweep`: what it says, and what it refuses in one line."""

import pytest

from droptop.cli import main

from studies import write_study


def test_sweep_prints_a_line_per_cell(tmp_path, capsys):
    study = write_study(tmp_path / "study.toml", debias="none", seeds=2)
    assert main(["sweep", str(study), "--out", str(tmp_path / "out")]) == 0
    first, *cells, last = capsys.readouterr().out.splitlines()
    assert first == "0 of 2 cells are done"
    assert sorted(line.partition("  ")[0] for line in cells) == ["1/2", "2/2"]
    assert sorted(line[-len("seed 0: done") :] for line in cells) == ["seed 0: done", "seed 1: done"]
    assert last.startswith("2 cells done, 0 failed; `droptop results ")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("sweep", "--out is missing"),
        ("sweep --out HERE/nothing", "study.toml is not there"),
        ("sweep HERE/none.toml --out HERE/x", "none.toml is not there"),
        ("sweep HERE --out HERE/x", "is a folder"),
        ("sweep HERE/study.toml --out HERE/mine", "holds something else"),
        ("sweep HERE/study.toml --out HERE/x --address here", "--address takes --engine ray beside it"),
        ("sweep HERE/study.toml --out HERE/x --cpus 0", "--cpus takes a number above 0"),
    ],
)
def test_impossible_requests_are_refused(args, says, tmp_path, capsys):
    write_study(tmp_path / "study.toml")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/note.txt").write_text("mine")
    assert main(args.replace("HERE", str(tmp_path)).split()) == 2
    said = capsys.readouterr().err
    assert says in said
    assert len(said.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["mine", "note.txt", "study.toml"]
