"""The page of a study over a numeric option, and against another reference: against loops over what was written."""

import json

import numpy as np
import pytest
from scipy.stats import sem, ttest_rel

from droptop import BadRequest
from droptop.cli import main
from droptop.runs.config import configure
from droptop.sweeps.grid import folder_name
from droptop.system.files import write_json

from plans import plan

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from droptop.report.page.render import describe, render
from droptop.report.page.study import headline

SEEDS = 5
RATES = (0.01, 0.1, 1.0)


def write_study(out, arms, tests=("clean", "removed"), **fixed):
    """A study of these arms, whose numbers are drawn; return them by arm and test set, a number per seed."""
    random, numbers = np.random.default_rng(0), {}
    lists = {name: sorted({arm[name] for arm in arms if name in arm}) for arm in arms for name in arm}
    lines = [
        f"{name} = {json.dumps(value)}"
        for name, value in ({"seeds": SEEDS, "data": "fashion", "debias": "none"} | lists | fixed).items()
    ]
    out.mkdir()
    (out / "study.toml").write_text("\n".join(lines))
    for arm in arms:
        config = configure("fashion", "er", **{"debias": "none"} | arm | fixed, seeds=SEEDS)
        run = out / "runs" / folder_name(config)
        run.mkdir(parents=True)
        (run / "config.toml").write_text(plan(config).toml())
        for seed in range(SEEDS):
            found = {test: {"A_avg": 50 + 5 * random.normal()} for test in tests}
            for test, figures in found.items():
                numbers.setdefault((tuple(arm.items()), test), []).append(figures["A_avg"])
            (run / f"seed-{seed}").mkdir()
            write_json(run / f"seed-{seed}" / "result.json", {"tests": found})
    return numbers


def rows_of(section):
    return [dict(zip(section.columns, row)) for row in section.rows]


def curves_of(page):
    return next((section for section in page.sections if section.name == "curves"), None)


def best_of(numbers, test):
    return max((arm for arm, own in numbers if own == test), key=lambda arm: np.mean(numbers[arm, test]))


def test_a_sweep_shows_accuracy_over_its_option_and_names_the_best(tmp_path):
    numbers = write_study(tmp_path / "s", [{"debias": d, "lr": lr} for d in ("none", "droptop") for lr in RATES])
    page = describe(tmp_path / "s", "again")
    rows = rows_of(curves_of(page))
    assert len(rows) == len(numbers) == 12
    for row in rows:
        values = numbers[(("debias", row["arm"]), ("lr", row["value"])), row["test"]]
        assert (row["mean"], row["error"], row["n"]) == (
            pytest.approx(np.mean(values)),
            pytest.approx(sem(values)),
            SEEDS,
        )
        assert (row["low"], row["high"]) == (
            pytest.approx(row["mean"] - row["error"]),
            pytest.approx(row["mean"] + row["error"]),
        )
    for test in ("clean", "removed"):
        (_, debias), (_, lr) = best_of(numbers, test)
        values = numbers[(("debias", debias), ("lr", lr)), test]
        spread = f"{np.mean(values):.1f} ± {sem(values):.1f}% (5 seeds; the best of 6 settings)"
        assert f"best lr on fashion, {test}: {lr} with {debias}, {spread}" in page.findings
    assert any("which flatters it: with hold_out = 10" in line for line in page.findings)
    for chart in curves_of(page).charts:
        assert chart.spec["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"  # 0.01 to 1
    assert "Accuracy over lr" in render(page)


def test_a_sweep_without_debiasing_is_headed_by_its_best(tmp_path):
    numbers = write_study(tmp_path / "s", [{"memory": memory} for memory in (100, 200, 400)], ("clean",), hold_out=10.0)
    page = describe(tmp_path / "s", "again")
    ((_, memory),) = best_of(numbers, "clean")
    mean = np.mean(numbers[(("memory", memory),), "clean"])
    assert page.headline.startswith(f"The best memory on fashion, clean: {memory}, {mean:.1f} ±")
    assert any("kept back (hold_out)" in line for line in page.findings)
    assert not any("flatters" in line for line in page.findings)
    assert "type" not in curves_of(page).charts[0].spec["layer"][0]["encoding"]["x"]["scale"]  # 100 to 400: linear


def test_what_lacks_the_option_is_a_level_line(tmp_path):
    gammas = (2.0, 8.0)
    arms = [{"debias": "none"}, *({"debias": "droptop", "gamma": gamma} for gamma in gammas)]
    numbers = write_study(tmp_path / "s", arms, ("clean",))
    page = describe(tmp_path / "s", "again", ["gamma", "debias"])
    drawn = {(row["arm"], row["value"]): row["mean"] for row in rows_of(curves_of(page))}
    plain = np.mean(numbers[(("debias", "none"),), "clean"])
    assert drawn == {
        **{("none", gamma): pytest.approx(plain) for gamma in gammas},
        **{
            ("droptop", g): pytest.approx(np.mean(numbers[(("debias", "droptop"), ("gamma", g)), "clean"]))
            for g in gammas
        },
    }
    assert "the best of 2 settings" in " ".join(page.findings)  # the plain arm has no gamma to be best


def test_differences_are_to_what_is_named(tmp_path):
    numbers = write_study(tmp_path / "s", [{"lr": lr} for lr in RATES], ("clean",))
    page = describe(tmp_path / "s", "again", ["lr"], "lr=0.1")
    rows = {row["row"]: row for row in rows_of(page.answer)}
    assert list(rows) == ["0.01: clean", "1.0: clean"]
    for lr in (0.01, 1.0):
        mine, other = (numbers[(("lr", rate),), "clean"] for rate in (lr, 0.1))
        interval = ttest_rel(mine, other).confidence_interval()
        row = rows[f"{lr}: clean"]
        assert (row["diff"], row["low"], row["high"]) == (
            pytest.approx(np.subtract(mine, other).mean()),
            pytest.approx(interval.low),
            pytest.approx(interval.high),
        )
    assert page.answer.title == "Differences to lr=0.1"
    assert "to lr=0.1" in page.tables[0].columns


NO = "no significant difference"


@pytest.mark.parametrize(
    ("words", "reference", "seeds", "said"),
    [
        (["better", "worse", "better", NO], "none", 5, "Of 4 comparisons, debiasing helps in 2 and hurts in 1; "),
        (["better", "worse", "worse"], "lr=0.1", 5, "Of 3 comparisons with lr=0.1, 1 is better and 2 are worse."),
        ([NO, NO], "er", 5, "No significant difference in any of 2 comparisons with er."),
        ([NO], "none", 5, "No significant difference in any of 1 comparison."),
        (
            ["points to better"] * 2,
            "er",
            4,
            "Of 2 comparisons with er, the seeds point to better in 2, to worse in 0; ",
        ),
        (["one seed: cannot tell"], "er", 1, "One seed cannot tell whether anything is better than er."),
    ],
)
def test_the_headline_of_a_study_names_its_reference(words, reference, seeds, said):
    assert headline(words, reference, seeds).startswith(said)


def test_a_study_of_words_has_no_curves(tmp_path):
    write_study(tmp_path / "s", [{"debias": debias} for debias in ("none", "droptop")], ("clean",))
    assert curves_of(describe(tmp_path / "s", "again")) is None
    with pytest.raises(BadRequest, match=r"--by takes options of the study's runs, .* not lrr; did you mean lr"):
        describe(tmp_path / "s", "again", ["lrr"])


def test_the_command_takes_both_for_a_study_alone(tmp_path, comparison, capsys):
    write_study(tmp_path / "s", [{"lr": lr} for lr in RATES], ("clean",))
    assert main(["report", str(tmp_path / "s"), "--by", "lr", "--against", "lr=0.1"]) == 0
    assert "Differences to lr=0.1" in (tmp_path / "s" / "report.html").read_text()
    capsys.readouterr()
    for flag, value in (("--by", "lr"), ("--against", "none")):
        assert main(["report", str(comparison), flag, value, "--out", str(tmp_path / "x.html")]) == 2
        assert capsys.readouterr().err == f"droptop: {flag} takes a study's folder, not {comparison}\n"
    assert not (tmp_path / "x.html").exists()
