"""`droptop run`, as a person types it."""

import json
import re
import shutil

import pytest

from toys import SHORT


@pytest.mark.parametrize(
    "args",
    [
        ["--data", "fashion", "--eval-every", "3"],
        ["--data", "fashion-background", "--debias", "fixed"],
        ["--class-order", "random", "--reference", "--no-drop-last", "--batch", "30"],
    ],
)
def test_run_evaluates_after_tasks_and_when_asked(args, tmp_path, here):
    done = here("run", *SHORT, *args, "--seeds", "1", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "A_avg" in done.stdout
    assert "mean ± standard error; F_last: lower is better" in " ".join(done.stdout.split())
    lines = (tmp_path / "out/seed-0/metrics.jsonl").read_text().splitlines()
    evaluated = [json.loads(line)["step"] for line in lines if '"eval"' in line]
    assert evaluated == (
        [2, 3, 4, 6, 8, 9, 10]
        if "--eval-every" in args
        else [3, 6, 9, 12, 15]
        if "--batch" in args
        else [2, 4, 6, 8, 10]
    )


def test_split_imbalance_noise_and_blur_together(tmp_path, here):
    stream = "--data fashion --split bag,boot/0,1,dress/sandal,2 --imbalance 400 --label-noise 20 --blurry 40"
    size = "--limit 90 --batch 15 --eval-every 4 --seeds 1"
    done = here("run", *SHORT, *stream.split(), *size.split(), "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "A_auc" in done.stdout
    lines = [json.loads(line) for line in (tmp_path / "out/seed-0/metrics.jsonl").read_text().splitlines()]
    result = json.loads((tmp_path / "out/seed-0/result.json").read_text())
    assert result["tasks"] == [[8, 9], [0, 1, 3], [5, 2]]
    figures = result["tests"]["clean"]
    assert [[a is None for a in row] for row in figures["matrix"]] == [[j > i for j in range(3)] for i in range(3)]
    area, before = 0.0, 0
    for line in lines:
        if "eval" in line:
            tally = line["eval"]["clean"]["all"]
            area += (line["step"] - before) * 100 * sum(tally["correct"]) / sum(tally["n"])
            before = line["step"]
    assert figures["A_auc"] == pytest.approx(area / before)
    first = next(line["eval"]["clean"]["all"]["n"] for line in lines if line.get("task_end"))
    assert first[8] == first[9] == 200
    assert sum(first) > 400  # classes of later tasks have been seen already
    assert first[4] == first[6] == first[7] == 0  # those left out never are


@pytest.mark.parametrize("args", [["--replay-forward", "separate", "--memory-batch", "16"], ["--reference"]])
def test_share_on_the_shortcut_is_of_the_stream(args, tmp_path, here):
    done = here("run", *SHORT, "--seeds", "1", *args, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    dropped = json.loads((tmp_path / "out/summary.json").read_text())["dropped"]
    assert dropped["share"][0] > 2 * dropped["chance"][0]  # chance is what other images' stickers would give


def test_a_run_that_began_can_resume_without_checkpoints(tmp_path, here):
    args = ["--method", "mir", "--memory-batch", "60", "--candidates", "80", "--memory", "100"]
    done = here("run", *SHORT, *args, "--seeds", "1", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(tmp_path / "out/seed-0/checkpoints")
    done = here("resume", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "finished" in done.stdout


def test_divergence_names_task_and_batch(tmp_path, here):
    done = here("run", *SHORT, "--lr", "1e30", "--seeds", "1", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert re.search(r"droptop seed 0: task 0, batch \d: the loss is .*lower --lr$", done.stderr)  # no use to resume
    assert len(done.stderr.splitlines()) == 1
