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
    *gone, refused = capsys.readouterr().err.splitlines()
    assert refused == f"droptop: {swept_copy} has no cell that is done"
    assert len(gone) == 4
    assert all(line.endswith("result.json is gone: left out") for line in gone)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (
            ["--against", "dropto"],
            "--against takes droptop, er, none or OPTION=VALUE, not dropto; did you mean droptop?",
        ),
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


def test_differences_are_to_what_is_named(swept, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert (
        main(["results", str(swept), "--by", "debias", "--against", "droptop", "--export", str(tmp_path / "r.csv")])
        == 0
    )
    assert "to droptop" in capsys.readouterr().out
    with (tmp_path / "r.csv").open() as file:
        rows = {(row["debias"], row["figure"]): row for row in csv.DictReader(file)}
    none, droptop = (rows[arm, "A_last"] for arm in ("none", "droptop"))
    assert droptop["diff"] == ""
    assert float(none["diff"]) == pytest.approx(float(none["mean"]) - float(droptop["mean"]))


def test_a_comparison_has_the_numbers_of_its_compare_json(comparison, tmp_path, capsys, monkeypatch):
    """Corrected p-values too, since all its arms and test sets are in the table."""
    monkeypatch.setenv("COLUMNS", "200")
    out = comparison[0]
    assert main(["results", str(out), "--export", str(tmp_path / "r.csv")]) == 0
    assert "to none" in capsys.readouterr().out
    effects = json.loads((out / "compare.json").read_text())["effects"]
    with (tmp_path / "r.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["arm"] != "none"]
    assert len(rows) == 3 * 3
    for row in rows:
        effect = effects[row["arm"]][row["test"]][row["figure"]]
        for name, number in (("diff", effect["diff"]), ("p", effect["p"]), ("p_holm", effect["p_holm"])):
            assert float(row[name]) == pytest.approx(number), (row, name)


def test_a_run_is_refused_with_a_hint(tmp_path, capsys):
    (tmp_path / "config.toml").write_text('command = "run"\ndata = "fashion"\nmethod = "er"\ndebias = "none"\n')
    assert main(["results", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert f"{tmp_path} is neither a study nor a comparison; `droptop report {tmp_path}` shows a run" in said
