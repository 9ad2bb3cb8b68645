"""`droptop compare`: what it writes and says."""

import json
import re
import shutil
import tomllib

import pytest
from PIL import Image

from pictures import write_tree
from toys import OF_TWO_TASKS, SHORT, droptop_here, made_once


def test_compare_writes_figures_pictures_and_an_arm_each(comparison):
    out, _ = comparison
    arms = ["none", "droptop"]
    result = json.loads((out / "compare.json").read_text())
    assert list(result["arms"]) == arms
    assert not (out / "cost.json").exists()  # a trial, with --limit, measures none
    for arm in arms:
        summary = json.loads((out / arm / "summary.json").read_text())
        assert summary == result["arms"][arm]
        assert (summary["data"], summary["method"], summary["debias"]) == ("fashion-sticker", "er", arm)
        assert summary["seeds"] == [0, 1]
        for test in ("biased", "removed", "random"):
            figures = summary["tests"][test]
            assert all(len(figures[name]) == 2 for name in ("A_avg", "A_last", "F_last", "matrix"))
            matrix = figures["matrix"][0]
            assert [[value is None for value in row] for row in matrix] == [[j > i for j in range(2)] for i in range(2)]
            assert all(0 <= value <= 100 for row in matrix for value in row if value is not None)
            assert ("contradict" in figures) == (test != "removed")
            effect = result["effects"]["droptop"][test]["A_avg"]
            assert effect["diff"] == pytest.approx(
                sum(
                    b - a
                    for a, b in zip(
                        result["arms"]["none"]["tests"][test]["A_avg"],
                        result["arms"]["droptop"]["tests"][test]["A_avg"],
                    )
                )
                / 2
            )
            assert effect["ci95"][0] <= effect["diff"] <= effect["ci95"][1]
        assert tomllib.loads((out / arm / "config.toml").read_text())["debias"] == arm
        assert json.loads((out / arm / "environment.json").read_text())["threads"] == 1
        for seed in (0, 1):
            lines = [json.loads(line) for line in (out / arm / f"seed-{seed}/metrics.jsonl").read_text().splitlines()]
            assert [line["step"] for line in lines] == list(range(1, 11))
            assert [line["task"] for line in lines] == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
            assert all(isinstance(line["loss"], float) for line in lines)
            assert any("kappa" in line for line in lines) == (arm == "droptop")
            assert all(("dropped" in line) == (arm == "droptop") for line in lines)
    for picture in (
        "figures/accuracy",
        "figures/matrix",
        "figures/attention",
        "droptop/figures/kappa",
        "droptop/figures/shortcut",
        "none/figures/accuracy",
    ):
        with Image.open(out / f"{picture}.png") as image:
            assert min(image.size) > 200


def test_compare_prints_its_figures(comparison):
    out, printed = comparison
    for word in (
        "A_avg",
        "A_last",
        "F_last",
        "95% interval",
        "contradict it",
        "worst group",
        "no verdict below 5 seeds",
    ):
        assert word in printed
    assert "none seed 1: done" in printed
    assert str(out) in printed
    assert "\x1b" not in printed  # plain lines where there is no terminal


def test_config_toml_runs_again_to_the_same_bytes(comparison, tmp_path, here):
    out, _ = comparison
    again = here("compare", "--config", out / "config.toml", "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again/compare.json").read_text() == (out / "compare.json").read_text()
    one = here(
        "run", "--config", out / "droptop/config.toml", "--seeds", 1, "--first-seed", 1, "--out", tmp_path / "one"
    )
    assert one.returncode == 0, one.stderr
    name = "seed-1/metrics.jsonl"
    assert (tmp_path / "one" / name).read_bytes() == (out / "droptop" / name).read_bytes()


def test_a_figure_that_cannot_be_measured_is_null(tmp_path, here):
    done = here("compare", *SHORT, *OF_TWO_TASKS, "--correlation", "1", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "not measured" in done.stdout
    assert "nan" not in done.stdout.lower()
    effects = json.loads((tmp_path / "out/compare.json").read_text())["effects"]["droptop"]["biased"]
    assert effects["contradict"] == dict.fromkeys(("diff", "ci95", "p", "least", "p_holm")) | {"n": 0}


ARMS = ["none", "droptop", "robust", "equal-droptop", "equal-robust"]


@pytest.fixture(scope="module")
def of_many(tmp_path_factory):
    """A comparison of arms by name, with plain arms of equal cost; and what was said."""

    def make(out):
        tree = write_tree(
            out.parent / "tree", {"train": dict.fromkeys("abcd", 12), "test": dict.fromkeys("abcd", 5)}, size=(16, 16)
        )
        of_data = ("--data", f"folder:{tree}", "--image-size", 16, "--tasks", 1, "--batch", 8)
        of_net = ("--width", 4, "--stem", "3x3", "--memory", 20, "--maps", 0)
        arms = ("--debias", "droptop,robust", "--equal-cost", "--seeds", 2)
        return droptop_here("compare", *of_data, *of_net, *arms, "--out", out)

    return made_once(tmp_path_factory, "many", make)


def test_a_comparison_of_many_arms_has_a_folder_and_a_cost_of_each(of_many):
    out, _ = of_many
    result, costs = (json.loads((out / name).read_text()) for name in ("compare.json", "cost.json"))
    assert list(result["arms"]) == list(costs) == ARMS
    assert list(result["effects"]) == ARMS[1:]
    assert list(result["at_equal_cost"]) == ["droptop", "robust"]
    for arm in ARMS:
        assert json.loads((out / arm / "summary.json").read_text()) == result["arms"][arm]
        noted = tomllib.loads((out / arm / "config.toml").read_text())
        assert noted["debias"] == (arm if arm in ("droptop", "robust") else "none")
    assert list(tomllib.loads((out / "config.toml").read_text())["arms"]) == ARMS
    assert costs["none"]["passes"] == (8 + 32) / 8
    for arm in ("droptop", "robust"):
        assert costs[f"equal-{arm}"]["passes"] == pytest.approx(costs[arm]["passes"], rel=0.05)
        assert costs[arm]["passes"] > 1.2 * costs["none"]["passes"]
    for test, effects in result["at_equal_cost"]["robust"].items():
        one, other = (result["arms"][arm]["tests"][test]["A_avg"] for arm in ("robust", "equal-robust"))
        assert effects["A_avg"]["diff"] == pytest.approx(sum(one) / 2 - sum(other) / 2)
    with Image.open(out / "figures/effects.png") as image:
        assert min(image.size) > 200


def test_a_comparison_of_many_arms_prints_ranks_and_costs(of_many):
    out, printed = of_many
    result, costs = (json.loads((out / name).read_text()) for name in ("compare.json", "cost.json"))
    table = re.findall(r"│\s+│ (\S+)\s+│ ([\d.]+) ± ", printed)  # the rows of an arm that is not the plain one
    ranking = sorted(
        ARMS[1:], key=lambda arm: -sum(tests["A_avg"]["diff"] for tests in result["effects"][arm].values())
    )
    (test,) = result["arms"]["none"]["tests"]
    assert [arm for arm, _ in table] == ranking
    for arm, mean in table:
        assert float(mean) == pytest.approx(sum(result["arms"][arm]["tests"][test]["A_avg"]) / 2, abs=0.051)
    sentences = [line.partition(":")[0] for line in printed.splitlines()]
    places = [sentences.index(arm) for arm in ranking]
    assert places == sorted(places)
    assert "points of A_avg beside none; words go by p-values corrected for 4 comparisons" in printed
    assert "robust against a plain arm of equal cost: " in printed
    for arm, cost in costs.items():
        ratio = cost["ms"] / costs["none"]["ms"]
        assert re.search(rf"│ {arm}\s+│\s+{cost['passes']:.2f}\s+│\s+{cost['ms']:.2f}\s+│\s+{ratio:.2f}\s+│", printed)


def test_a_comparison_of_many_arms_has_a_page(of_many, tmp_path, here):
    out, _ = of_many
    done = here("report", out, "--out", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    headline = re.search(r"<h1>(.*)</h1>", page)[1]
    assert ", the best of 2 arms so far" in headline
    assert headline.endswith("; no verdict below 5 seeds (2 seeds).")
    for said in ("The effect of every arm", "Cost of a step", "robust against a plain arm of equal cost: "):
        assert said in page


def test_a_comparison_of_many_arms_goes_on_where_it_stopped(of_many, tmp_path, here):
    out, _ = of_many
    copy = shutil.copytree(out, tmp_path / "copy")
    for path in (copy / "robust/seed-1", copy / "equal-droptop/seed-0"):
        shutil.rmtree(path)
    before = (copy / "cost.json").read_bytes()
    (copy / "compare.json").unlink()
    done = here("resume", copy)
    assert done.returncode == 0, done.stderr
    assert "robust seed 1: done" in done.stdout
    assert "robust seed 0: done" not in done.stdout
    for name in ("compare.json", "robust/seed-1/metrics.jsonl", "equal-droptop/seed-0/metrics.jsonl", "config.toml"):
        assert (copy / name).read_bytes() == (out / name).read_bytes()
    assert (copy / "cost.json").read_bytes() == before
    again = here("resume", copy)
    assert f"{copy} is finished: nothing to resume" in again.stdout
    assert "what a training step costs" in again.stdout


def test_arms_of_a_file_are_compared(tmp_path, here):
    file, out = tmp_path / "arms.toml", tmp_path / "out"
    file.write_text(
        'data = "fashion"\nseeds = 1\nlimit = 64\ntasks = 1\nwidth = 4\nmemory = 20\nmemory_batch = 4\nmaps = 0\n'
        '[arms.slow]\nlr = 0.001\n[arms.mixed]\ndebias = "mixstyle"\nmixstyle.share = 1.0\n'
    )
    done = here("compare", "--config", file, "--out", out)
    assert done.returncode == 0, done.stderr
    assert list(json.loads((out / "compare.json").read_text())["arms"]) == ["none", "slow", "mixed"]
    noted = {arm: tomllib.loads((out / arm / "config.toml").read_text()) for arm in ("none", "slow", "mixed")}
    assert [noted[arm]["learner"]["lr"] for arm in noted] == [0.05, 0.001, 0.05]
    assert noted["mixed"]["mixstyle"]["share"] == 1.0
    losses = [json.loads((out / arm / "seed-0/metrics.jsonl").read_text().splitlines()[1])["loss"] for arm in noted]
    assert len(set(losses)) == 3


def test_an_impossible_arm_is_refused_before_anything_is_written(tmp_path, here):
    for names, says in (
        ("droptop,robst", "not robst; did you mean robust?"),
        ("droptop,droptop", "--debias takes every arm once"),
        ("none", "--debias takes something to compare with none"),
    ):
        done = here("compare", "--debias", names, "--out", tmp_path / "out")
        assert (done.returncode, says in done.stderr, done.stderr.count("\n")) == (2, True, 1)
    assert not (tmp_path / "out").exists()
