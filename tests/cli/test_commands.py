"""The real command, as a person types it."""

import importlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
import warnings

import matplotlib.pyplot as plt
import pytest
import torch
from PIL import Image

from droptop.cli import main
from droptop.cli.main import COMMANDS, USAGE
from droptop.figures.run_figures import shortcut_shares
from droptop.runs.build import build_learner, build_stream
from droptop.runs.config import configure

from toys import SHORT, droptop


def test_compare_writes_what_it_promises(comparison):
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
            effect = result["effects"][test]["A_avg"]
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


def test_compare_says_what_it_found(comparison):
    out, printed = comparison
    for word in ("A_avg", "A_last", "F_last", "95% interval", "contradict it", "worst group", "no significant"):
        assert word in printed
    assert "none seed 1: done" in printed
    assert str(out) in printed
    assert "\x1b" not in printed  # plain lines where there is no terminal


def test_both_arms_start_alike():
    config = configure(width=4)
    arms = [config.arm("none"), config]
    streams = [build_stream(arm, 3) for arm in arms]
    learners = [build_learner(arm, stream, 3) for arm, stream in zip(arms, streams)]
    assert torch.equal(streams[0].train.x, streams[1].train.x)
    assert all(torch.equal(a, b) for a, b in zip(streams[0].order, streams[1].order))
    states = [learner.state_dict() for learner in learners]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_runs_again_from_its_config(comparison, tmp_path):
    out, _ = comparison
    again = droptop("compare", "--config", out / "config.toml", "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again/compare.json").read_text() == (out / "compare.json").read_text()
    one = droptop(
        "run", "--config", out / "droptop/config.toml", "--seeds", 1, "--first-seed", 1, "--out", tmp_path / "one"
    )
    assert one.returncode == 0, one.stderr
    name = "seed-1/metrics.jsonl"
    assert (tmp_path / "one" / name).read_bytes() == (out / "droptop" / name).read_bytes()


@pytest.mark.parametrize(
    "args",
    [
        ["--data", "fashion", "--eval-every", "3"],
        ["--data", "fashion-background", "--debias", "fixed"],
        ["--class-order", "random", "--reference", "--no-drop-last", "--batch", "30"],
    ],
)
def test_run(args, tmp_path):
    done = droptop("run", *SHORT, *args, "--seeds", "1", "--out", tmp_path / "out")
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


def test_a_stream_of_every_difficulty(tmp_path):
    done = droptop(
        "run",
        *SHORT,
        "--data",
        "fashion",
        "--split",
        "bag,boot/0,1,dress/sandal,2",
        "--imbalance",
        "400",
        "--label-noise",
        "20",
        "--blurry",
        "40",
        "--limit",
        "90",
        "--batch",
        "15",
        "--eval-every",
        "4",
        "--seeds",
        "1",
        "--out",
        tmp_path / "out",
    )
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


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ("compare --gamma 120 --out OUT", "--gamma takes a percentage"),
        ("compare --memory 0 --out OUT", "--memory takes"),
        ("compare --alpha 1.5 --out OUT", "--alpha takes"),
        ("compare --gama 5 --out OUT", "did you mean --gamma"),
        ("compare --seeds five --out OUT", "--seeds takes an integer, not 'five'"),
        ("compare --drop all --out OUT", "--drop takes one of"),
        ("run --debias none --gamma 5 --out OUT", "unknown option gamma"),
        ("compare --debias none --out OUT", "--debias"),
        ("compare --data imagenet --out OUT", "there is no stream imagenet; there are fashion"),
        ("compare --method sgd --out OUT", "--method takes one of er"),
        ("compare --data fashon --out OUT", "did you mean fashion?"),
        ("compare --method deerpp --out OUT", "did you mean derpp?"),
        ("compare --debias dorptop --out OUT", "--debias takes one of none, droptop"),
        ("compare --debias dorptop --out OUT", "not dorptop; did you mean droptop?"),
        ("paper tabel1 --out OUT", "there is no recipe tabel1; there are table1"),
        ("paper tabel1 --out OUT", "did you mean table1?"),
        ("data lits", "did you mean list?"),
        ("comprae --out OUT", "did you mean compare?"),
        ("compare --config nowhere.toml --out OUT", "droptop: nowhere.toml is not there"),
        ("compare --config HERE --out OUT", "cannot be read: Is a directory"),
        ("compare --config HERE/note.txt --out OUT", "note.txt is not TOML: "),
        ("run --config examples/study.toml --out OUT", "`droptop sweep examples/study.toml --out FOLDER` runs that"),
        ("run --tasks 5 --split 0,1/2,3 --out OUT", "--split takes the place of --tasks, not both"),
        ("run --split 0,1/2,3 --stream.class-order=random --out OUT", "--split takes the place of --class-order"),
        ("compare --weights nowhere --out OUT", "--weights"),
        ("compare --weights random --out OUT", "--weights takes a file or hf:OWNER/NAME with a ResNet"),
        ("compare --method l2p --out OUT", "--weights random"),
        (
            "run --method dualprompt --weights random --experts 4 --out OUT",
            "--experts takes at least one for each of 5",
        ),
        ("compare --root nowhere --out OUT", "--root"),
        ("compare --limit 5 --out OUT", "--limit"),
        ("compare --tasks 3 --out OUT", "--tasks"),
        ("compare --split bag/0,8 --out OUT", "--split takes every class once, not bag twice"),
        ("compare --stem 7x7/2-pool --debias no-fusion --out OUT", "1 x 1"),
        ("compare something --out OUT", "droptop compare has no place for something"),
        ("compare --seeds", "--seeds takes a value"),
        ("compare", "--out is missing"),
        ("compare --out HERE", "holds something already"),
        ("compare --out HERE/note.txt", "is a file"),
        ("resume HERE", "not a run folder"),
        ("resume", "FOLDER is missing"),
        ("resume HERE --lr 0.3", "droptop resume takes no --lr; `droptop resume --help` says what it takes"),
        ("resume HERE --sedes=3", "droptop resume takes no --sedes; did you mean --seeds?"),
        ("retrain", "unknown command"),
    ],
)
def test_what_cannot_be_done(args, names, tmp_path, capsys):
    (tmp_path / "here").mkdir()
    (tmp_path / "here/note.txt").write_text("mine")
    assert main(args.replace("OUT", f"{tmp_path}/out").replace("HERE", f"{tmp_path}/here").split()) == 2
    said = capsys.readouterr()
    assert names in said.err
    assert re.fullmatch(r"droptop: [^\n]+\n", said.err)  # one line
    assert said.out == ""
    assert not (tmp_path / "out").exists()
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["note.txt"]


def test_the_real_command_says_what_cannot_be_done():
    done = droptop("compare", "--gamma", "120", "--out", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"droptop: --gamma takes a percentage[^\n]+\n", done.stderr)


def test_a_shortcut_that_is_never_contradicted(tmp_path):
    done = droptop("compare", *SHORT, "--correlation", "1", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "not measured" in done.stdout
    assert "nan" not in done.stdout.lower()
    effects = json.loads((tmp_path / "out/compare.json").read_text())["effects"]["biased"]
    assert effects["contradict"] == dict.fromkeys(("diff", "ci95", "p", "p_holm"))


@pytest.mark.parametrize("args", [["--replay-forward", "separate", "--memory-batch", "16"], ["--reference"]])
def test_share_on_the_shortcut_is_of_the_stream(args, tmp_path):
    done = droptop("run", *SHORT, "--seeds", "1", *args, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    dropped = json.loads((tmp_path / "out/summary.json").read_text())["dropped"]
    assert dropped["share"][0] > 2 * dropped["chance"][0]  # chance is what other images' stickers would give


def test_a_request_that_was_accepted_resumes(tmp_path):
    args = ["--method", "mir", "--memory-batch", "60", "--candidates", "80", "--memory", "100"]
    done = droptop("run", *SHORT, *args, "--seeds", "1", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(tmp_path / "out/seed-0/checkpoints")
    done = droptop("resume", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "finished" in done.stdout


def test_bench(tmp_path):
    done = droptop("bench", "--methods", "er,finetune", "--steps", "3", "--width", "4", "--out", tmp_path / "b.json")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "b.json").read_text())["rows"]
    assert [(row["method"], row["debias"], row["engine"]) for row in rows] == [
        ("er", "none", "plain loop"),
        ("er", "none", "eager"),
        ("er", "droptop", "eager"),
        ("finetune", "none", "eager"),
        ("finetune", "droptop", "eager"),
    ]
    assert rows[2]["shares"].keys() == {"rest", "memory", "images", "forward", "mask", "attention", "backward", "probe"}
    assert all(99 < sum(row["shares"].values()) < 101 for row in rows[1:])
    for args in (
        ["--methods", "sgd"],
        ["--steps", "1"],
        ["--out", "nowhere/b.json"],
        ["--debias", "none"],
        ["--seeds", "1,5"],
        ["--engines", "graphs"],
        ["--data", "nothing"],
    ):
        wrong = droptop("bench", *args)
        assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)


def test_divergence_names_task_and_batch(tmp_path):
    done = droptop("run", *SHORT, "--lr", "1e30", "--seeds", "1", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert re.search(r"droptop seed 0: task 0, batch \d: the loss is .*lower --lr$", done.stderr)  # no use to resume
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "args", ["--help", "--version", "run --help", "compare --help", "resume --help", "bench --help"]
)
def test_help(args):
    done = droptop(*args.split())
    assert done.returncode == 0
    assert "droptop" in done.stdout


def test_help_does_not_wait_for_torch():
    code = (
        "import sys, droptop\nfrom droptop.cli import main\n"
        "assert [main([word]) for word in ('--help', '--version', 'runn')] == [0, 0, 2]\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("droptop: unknown command runn: there are run, compare, resume,")


def test_ctrl_c_while_a_command_is_loaded(monkeypatch, capsys):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["droptop.cli.main"], "import_module", interrupted)
    assert main(["run", "--out", "nowhere"]) == 130
    assert capsys.readouterr().err == "droptop: interrupted\n"


def test_a_note_is_said_once(capsys):
    assert main(["--version"]) == 0
    for text in ("one", "one", "other"):
        with warnings.catch_warnings():  # as figures do
            warnings.simplefilter("ignore")
        warnings.warn(text, stacklevel=1)
    assert capsys.readouterr().err == "note: one\nnote: other\n"


def test_every_command_is_where_it_is_said_to_be():
    for name, file in COMMANDS.items():
        assert callable(getattr(importlib.import_module(f"droptop.cli.{file}"), name))
        assert f"\n  {name} " in USAGE
