"""benchmarks/: tables of effects against scipy's paired test, and what is recorded of how they were made."""

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from droptop.runs.tuned_presets import PRESETS, TunedPreset

REPOSITORY = Path(__file__).parent.parent
CUES = ("sticker", "frame")
ARMS = ("none", "droptop", "robust")


def table(path, names, rows):
    """Writes a table of seeds, as `droptop results` exports it."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "test", "figure", "n", "mean", "error", "cells", "p_holm"])
        writer.writerows([*row[:-1], 1, row[-1], "", 1, ""] for row in rows)
    return path


def printed(script, *tables):
    """Runs a script of effects; gives its rows."""
    command = [sys.executable, REPOSITORY / "benchmarks" / script, *tables]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def holm(p_values):
    """Holm's correction, by its definition."""
    order = np.argsort(p_values)
    steps = [min(1, (len(order) - rank) * p_values[at]) for rank, at in enumerate(order)]
    corrected = np.empty(len(order))
    corrected[order] = np.maximum.accumulate(steps)
    return corrected


def assert_effect(row, name, before, after):
    """A row has the difference, interval and p of scipy."""
    effect = ttest_rel(after, before)
    interval = effect.confidence_interval()
    expected = [np.mean(after - before), interval.low, interval.high, effect.pvalue]
    assert [float(row[f"{name} {part}"]) for part in ("diff", "low", "high", "p")] == pytest.approx(expected)


@pytest.fixture
def painted():
    """Accuracy by cue, arm and test set: six seeds."""
    random = np.random.default_rng(0)
    means = {"biased": 80, "random": 50, "removed": 60}
    return {(cue, arm, test): means[test] + random.normal(size=6) for cue in CUES for arm in ARMS for test in means}


def painted_table(path, painted):
    rows = [
        ("split-cifar10", "er", arm, cue, 100 + at, test, figure, value)
        for (cue, arm, test), values in painted.items()
        for at, value in enumerate(values)
        for figure in ("A_avg", "A_last")
    ]
    return table(path, ("data", "method", "debias", "stream.shortcut", "seed"), rows)


def test_stress_has_what_cues_cost_and_what_is_given_back(tmp_path, painted):
    rows = printed("stress/effects.py", painted_table(tmp_path / "stress.csv", painted))
    assert len(rows) == len(CUES) * len(ARMS)
    costs = [row for row in rows if row["debias"] == "none"]
    expected = holm(
        [
            ttest_rel(painted[row["cue"], "none", "biased"], painted[row["cue"], "none", "random"]).pvalue
            for row in costs
        ]
    )
    assert [float(row["cost p_holm"]) for row in costs] == pytest.approx(list(expected))
    for row in rows:
        cue, arm = row["cue"], row["debias"]
        assert (row["data"], row["method"], row["n"]) == ("split-cifar10", "er", "6")
        assert float(row["random mean"]) == pytest.approx(painted[cue, arm, "random"].mean())
        assert_effect(row, "cost", painted[cue, arm, "random"], painted[cue, arm, "biased"])
        if arm == "none":
            assert row["given back diff"] == row["on biased p_holm"] == ""
        else:
            assert_effect(row, "given back", painted[cue, "none", "random"], painted[cue, arm, "random"])
            assert_effect(row, "on biased", painted[cue, "none", "biased"], painted[cue, arm, "biased"])


def test_stress_is_drawn_of_every_stream(tmp_path, painted):
    pictures = [tmp_path / "one.png", tmp_path / "two.png"]
    first = painted_table(tmp_path / "stress.csv", painted)
    for picture, tables in zip(pictures, ([first], [first, first])):
        script = REPOSITORY / "benchmarks/stress/picture.py"
        subprocess.run([sys.executable, script, picture, *tables], check=True)
    widths = [int.from_bytes(picture.read_bytes()[16:20]) for picture in pictures]
    assert 1.5 * widths[0] < widths[1] < 1600  # a block for each; legible at half of that, which a page shows


def test_learners_are_compared_on_the_seeds_that_both_have(tmp_path):
    names = ("data", "method", "debias", "batch", "memory_batch", "seed")
    random = np.random.default_rng(0)
    values = {
        (debias, batch): 50 + random.normal(size=count)
        for debias, batch, count in (("none", 32, 6), ("droptop", 32, 4), ("robust", 32, 5), ("none", 10, 3))
    }
    tables = [
        table(
            tmp_path / f"{number}.csv",
            names,
            [
                ("split-cifar10", "scr", debias, batch, 32, 100 + at, "clean", figure, value + add)
                for (debias, batch), of_arm in values.items()
                if (debias == "none") == (number == 0)
                for at, value in enumerate(of_arm)
                for figure, add in (("A_avg", 0), ("A_last", -9), ("F_last", 5))
            ],
        )
        for number in range(2)
    ]
    rows = {(row["arm"], row["batches"]): row for row in printed("learners/effects.py", *tables)}
    assert list(rows) == [("none", "32 + 32"), ("none", "10 + 32"), ("droptop", "32 + 32"), ("robust", "32 + 32")]
    plain = values["none", 32]
    for arm in ("droptop", "robust"):
        ours = values[arm, 32]
        for figure in ("A_avg", "A_last", "F_last"):
            assert_effect(rows[arm, "32 + 32"], figure, plain[: len(ours)], ours)
    p_values = [ttest_rel(values[arm, 32], plain[: len(values[arm, 32])]).pvalue for arm in ("droptop", "robust")]
    shown = [float(rows[arm, "32 + 32"]["A_avg p_holm"]) for arm in ("droptop", "robust")]
    assert shown == pytest.approx(list(holm(p_values)))
    assert rows["none", "10 + 32"]["n"] == "3"
    assert rows["none", "10 + 32"]["A_avg diff"] == ""
    assert [bool(row["published A_last"]) for row in rows.values()] == [True, True, False, False]


def test_what_is_recorded_names_the_command_and_the_seeds(tmp_path, painted):
    root = tmp_path / "repository"
    for name in ("record.py", "stress/effects.py", "stress/cifar10.toml"):
        (root / "benchmarks" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / "benchmarks" / name, root / "benchmarks" / name)
    (root / "benchmarks/h200/seeds").mkdir(parents=True)
    index = root / "benchmarks/index.csv"
    index.write_text(
        "file,rows,command,machine,device,commit,date,seeds\nother.csv,,droptop run,CPU,fp32,abc,2026-11-01,0\n"
    )
    painted["frame", "robust", "biased"] = painted["frame", "robust", "biased"][:4]
    painted["frame", "robust", "random"] = painted["frame", "robust", "random"][:4]
    painted["frame", "robust", "removed"] = painted["frame", "robust", "removed"][:4]
    export = painted_table(tmp_path / "stress-cifar10.csv", painted)
    for commit in ("abc1234", "def5678"):  # the second replaces the first
        command = [sys.executable, "benchmarks/record.py", commit, "benchmarks/stress/cifar10.toml", export]
        subprocess.run(command, cwd=root, check=True, capture_output=True)
    with index.open(newline="") as file:
        other, effects, seeds = csv.DictReader(file)
    assert other["file"] == "other.csv"
    assert effects["command"] == "python benchmarks/stress/effects.py benchmarks/h200/seeds/stress-cifar10.csv"
    assert seeds["command"] == (
        "droptop results studies/stress-cifar10 --by data,method,debias,stream.shortcut,seed --export FILE "
        "(droptop sweep benchmarks/stress/cifar10.toml)"
    )
    assert (effects["commit"], effects["device"]) == ("def5678", "bf16")
    assert effects["seeds"] == seeds["seeds"] == "100 to 105; robust frame: 100 to 103"
    kept = (root / "benchmarks/h200/seeds/stress-cifar10.csv").read_text().splitlines()
    assert kept[0] == "data,method,debias,stream.shortcut,seed,test,figure,n,mean"
    assert (root / "benchmarks/h200/stress-cifar10.csv").read_text().count("\n") == 1 + len(CUES) * len(ARMS)


@pytest.fixture
def tuned(tmp_path):
    """A tuned comparison of DER++ in which `robust` gains, and a table without tuning in which it does not."""
    random = np.random.default_rng(0)
    values = {"none": 50 + random.normal(size=6)}
    values["robust"] = values["none"] + 4 + random.normal(size=6)
    arms = {
        arm: {"data": "split-tiny-imagenet9", "method": "derpp", "tests": {"only_fg": {"A_avg": list(of_arm)}}}
        for arm, of_arm in values.items()
    }
    effect = ttest_rel(values["robust"], values["none"])
    change = {"n": 6, "diff": np.mean(values["robust"] - values["none"]), "ci95": list(effect.confidence_interval())}
    change |= {"p": effect.pvalue, "p_holm": effect.pvalue}
    settings = {"none": (0.0123456, 0.9), "robust": (0.05, 0.0)}
    tuning = {
        arm: {"settings": {"learner.lr": lr, "learner.momentum": momentum}, "confirmed": {"mean": 40, "error": 1}}
        for arm, (lr, momentum) in settings.items()
    }
    comparison = {"arms": arms, "effects": {"robust": {"only_fg": {"A_avg": change}}}, "tuning": {"arms": tuning}}
    (tmp_path / "derpp.json").write_text(json.dumps(comparison))
    (tmp_path / "untuned.csv").write_text(
        "stream,method,arm,test,n,mean,error,diff,low,high,p,p_holm\n"
        "split-tiny-imagenet9,er,robust,only_fg,10,50,1,9,8,10,0.001,0.002\n"
        "split-tiny-imagenet9,derpp,none,only_fg,10,50,1,,,,,\n"
        "split-tiny-imagenet9,derpp,robust,only_fg,10,51,1,1,-1,3,0.3,0.6\n"
    )
    return tmp_path


def test_a_verdict_that_tuning_changes_stands_beside_the_untuned_one(tuned):
    plain, ours = printed("tuned/effects.py", tuned / "derpp.json", tuned / "untuned.csv")
    assert (plain["arm"], plain["lr"], plain["further"], plain["verdict"], plain["verdict untuned"]) == (
        "none", "0.0123", "momentum 0.9", "", "",
    )  # fmt: skip
    assert (ours["verdict"], ours["verdict untuned"]) == ("better", "no significant difference")
    assert (ours["untuned diff"], ours["untuned n"]) == ("1.0", "10.0")
    assert float(ours["held-out mean"]) == 40


def test_presets_are_those_of_the_plain_arm_and_stand_in_the_committed_table(tuned):
    command = [sys.executable, REPOSITORY / "benchmarks/tuned/effects.py", "--presets", tuned / "derpp.json"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = TunedPreset({"lr": 0.0123, "momentum": 0.9}, "docs/evidence/tuned.md")
    assert eval(f"{{{said}}}", {"TunedPreset": TunedPreset}) == {("derpp", "split-tiny-imagenet9"): found}
    for (method, data), preset in PRESETS.items():
        command[3:] = [REPOSITORY / f"benchmarks/h200/tuned-{data.removeprefix('split-')}-{method}.json"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert eval(f"{{{said}}}", {"TunedPreset": TunedPreset}) == {(method, data): preset}


def test_summary_is_of_the_mean_over_the_test_sets_of_a_kind(tmp_path):
    random = np.random.default_rng(0)
    sets = ("only_fg", "mixed_rand", "mixed_next", "stylized")
    values = {
        (arm, iterations, test): 40 + random.normal(size=6)
        for arm, iterations in (("none", 1), ("none", 2), ("robust", 2))
        for test in sets
    }
    values["robust", 2, "stylized"] = values["robust", 2, "stylized"][:5]
    values["none", 2, "only_fg"] = values["none", 2, "only_fg"][:4]
    rows = [
        ("split-tiny-imagenet9", "er", arm, iterations, 100 + at, test, "A_avg", value)
        for (arm, iterations, test), of_arm in values.items()
        for at, value in enumerate(of_arm)
    ]
    names = ("data", "method", "debias", "iterations", "seed")
    found = printed("robust/summary.py", table(tmp_path / "seeds.csv", names, rows))
    assert {row["arm"] for row in found} == {"robust"}  # of equal cost there are four seeds
    (row,) = (row for row in found if row["n"])
    plain, ours = (np.mean([values[arm, n, test][:5] for test in sets], 0) for arm, n in (("none", 1), ("robust", 2)))
    interval = ttest_rel(ours, plain).confidence_interval()
    expected = [(ours - plain).mean(), interval.low, interval.high]
    assert [float(row[name]) for name in ("diff", "low", "high")] == pytest.approx(
        100 * np.array(expected) / plain.mean()
    )
    assert (row["kind"], row["n"], row["seeds"]) == ("other background or texture", "5", "n = 5")
