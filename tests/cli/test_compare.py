"""`droptop compare`: what it writes and says."""

import json
import tomllib

import pytest
from PIL import Image

from toys import SHORT


def test_compare_writes_figures_pictures_and_an_arm_each(comparison):
    out, _ = comparison
    arms = ["none", "droptop"]
    result = json.loads((out / "compare.json").read_text())
    assert list(result["arms"]) == arms
    for arm in arms:
        summary = json.loads((out / arm / "summary.json").read_text())
        assert summary == result["arms"][arm]
        assert (summary["data"], summary["method"], summary["debias"]) == ("fashion-sticker", "er", arm)
        assert summary["seeds"] == [0, 1]
        for test in ("biased", "removed", "random"):
            figures = summary["tests"][test]
            assert all(len(figures[name]) == 2 for name in ("A_avg", "A_last", "F_last", "matrix"))
            matrix = figures["matrix"][0]
            assert [[value is None for value in row] for row in matrix] == [[j > i for j in range(5)] for i in range(5)]
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
            assert [line["task"] for line in lines] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
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
    for word in ("A_avg", "A_last", "F_last", "95% interval", "contradict it", "worst group", "no significant"):
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
    done = here("compare", *SHORT, "--correlation", "1", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "not measured" in done.stdout
    assert "nan" not in done.stdout.lower()
    effects = json.loads((tmp_path / "out/compare.json").read_text())["effects"]["droptop"]["biased"]
    assert effects["contradict"] == dict.fromkeys(("diff", "ci95", "p", "p_holm"))
