"""`droptop results`: what a study found, as a table and as a file."""

import csv
import json

import pytest

from droptop.cli import main

from toys import droptop


def test_results_are_shown_and_exported(swept, tmp_path):
    done = droptop("results", swept, "--by", "method,debias", "--export", tmp_path / "r.csv")
    assert done.returncode == 0, done.stderr
    assert "mean ± standard error; F_last: lower is better" in done.stdout
    assert f"6 rows in {tmp_path / 'r.csv'}\n" in done.stdout
    with (tmp_path / "r.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 3  # two arms, three figures
    values = {
        arm: [
            json.loads(path.read_text())["tests"]["clean"]["A_avg"]
            for path in swept.glob(f"runs/*-{arm}-*/*/result.json")
        ]
        for arm in ("none", "droptop")
    }
    found = {row["debias"]: row for row in rows if row["figure"] == "A_avg"}
    for arm, each in values.items():
        assert float(found[arm]["mean"]) == pytest.approx(sum(each) / 2)
    difference = (sum(values["droptop"]) - sum(values["none"])) / 2
    assert float(found["droptop"]["diff"]) == pytest.approx(difference)


def test_figures_and_tests_choose_what_is_shown(swept, capsys):
    assert main(["results", str(swept), "--figures", "A_last", "--tests", "clean", "--by", "debias,seed"]) == 0
    said = capsys.readouterr().out
    assert "A_last" in said
    assert "A_avg" not in said


def test_a_study_without_results_is_refused(swept_copy, capsys):
    for path in swept_copy.glob("runs/*/*/result.json"):
        path.unlink()
    assert main(["results", str(swept_copy)]) == 2
    assert capsys.readouterr().err == f"droptop: {swept_copy} has no cell that is done\n"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--by", "weather"], "--by takes options of the study's runs"),
        (["--export", "x.pdf"], "--export takes a .csv or .parquet file, not x.pdf"),
        (["--export", "nowhere/x.csv"], "--export takes a file in an existing folder"),
        (["--figures", "A_worst"], "nothing was measured of A_worst"),
    ],
)
def test_impossible_requests_are_refused(args, says, swept, capsys):
    assert main(["results", str(swept), *args]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert len(said.splitlines()) == 1


def test_a_run_is_refused_with_a_hint(comparison, capsys):
    assert main(["results", str(comparison[0])]) == 2
    assert f"`droptop report {comparison[0]}` shows a run or comparison" in capsys.readouterr().err
