"""`droptop stress`: a study of cues by the real command, what it says of it, and what it refuses in one line."""

import json
import shutil
import tomllib

import pytest
from PIL import Image

from droptop.cli import main
from droptop.cli.results import values_of_study
from droptop.cli.stress_study import grown, study_text
from droptop.results.stress import stressed
from droptop.runs.folder import read_request
from droptop.sweeps.grid import cells_of, read_study
from droptop.sweeps.study_folder import requested_cells

from pictures import write_tree
from studies import TINY, digests, write_study
from toys import droptop, made_once

SMALL = [token for name, value in TINY.items() for token in (f"--{name.replace('_', '-')}", str(value))]


class Listening:
    """A console that keeps what it is told."""

    def __init__(self):
        self.said = []

    def print(self, text, **_):
        self.said.append(text)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    def make(out):
        command = ["stress", "--data", "fashion", "--cues", "frame,watermark", "--debias", "decouple", "--seeds", "1"]
        done = droptop(*command, *SMALL, "--out", out)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return made_once(tmp_path_factory, "stress", make)


def test_it_measures_every_cue_and_arm(study):
    out, said = study
    found = {}
    for path in out.glob("runs/*/seed-*/result.json"):
        options = read_request(path.parent.parent).arms[0].options
        assert (options["limit"], options["net.width"], options["maps"]) == (64, 4, 0)
        key = (options["stream.shortcut"], options["debias"])
        found.setdefault(key, []).append(json.loads(path.read_text())["tests"])
    assert sorted(found) == [(cue, arm) for cue in ("frame", "watermark") for arm in ("decouple", "none")]
    for (cue, arm), [tests] in found.items():
        cost = tests["biased"]["A_avg"] - tests["random"]["A_avg"]
        costs = said.partition("What debiasing gives back")[0]
        [line] = [line for line in costs.splitlines() if f" {cue} " in line and f" {arm} " in line and "│" in line]
        assert f" {round(cost, 1) + 0:+.1f} " in line
    assert f"`droptop report {out}`" in said
    with Image.open(out / "figures/stress.png") as picture:
        assert min(picture.size) > 200


def test_it_goes_on_where_it_stopped(study, capsys):
    out, _ = study
    before = digests(out)
    lost = sorted(before)[0].rpartition("/")[0]
    (out / lost / "result.json").unlink()
    assert main(["stress", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("3 of 4 cells are done\n4/4 ")
    assert digests(out) == before


def test_the_page_leads_with_it(study):
    pytest.importorskip("altair")
    from droptop.report.page.render import describe, render

    page = describe(study[0], "again")
    assert page.headline.startswith("er has barely learned with any cue")  # 64 images, a net of width 4
    assert page.answer.title.startswith("What a cue costs")
    kinds = [row[0] for row in page.answer.rows]
    assert (kinds.count("cost"), kinds.count("given back"), kinds.count("on biased")) == (4, 2, 2)
    assert len(page.answer.charts) == 3
    assert [section.name for section in page.sections[:2]] == ["debiasing", "accuracy"]
    for section in page.sections[:2]:  # a row per cue, not their mean
        labels = [row[1] for row in section.rows]
        for cue in ("frame", "watermark"):
            assert len([label for label in labels if f" {cue}: random" in label]) == len(labels) // 6
    measured = {row.random.mean for row in stressed(values_of_study(study[0]))}
    assert {row[3] for row in page.sections[1].rows if row[1].endswith(": random")} == measured
    assert page.headline.split(";")[0].rstrip(".") in render(page)


def test_all_cues_that_the_images_take_are_the_usual_ones(tmp_path):
    console = Listening()
    study = tomllib.loads(study_text(["--data", "fashion", "--out", "x"], console))
    assert study["stream.shortcut"] == ["sticker", "watermark", "frame", "colour", "background", "frequency"]
    assert (study["debias"], study["seeds"], study["limit"], study["maps"]) == (["none"], 5, 1000, 0)
    assert console.said == []
    tree = write_tree(tmp_path / "tree", {"train": {"a": 40, "b": 40}, "test": {"a": 2, "b": 2}})
    own = [
        "--data",
        f"folder:{tree}",
        "--image-size",
        "8",
        "--seeds",
        "3",
        "--debias",
        "droptop,robust",
        "--gamma",
        "2.0",
    ]
    study = study_text([*own, "--gamma", "2.0", "--out", "x"], console)
    assert tomllib.loads(study)["stream.shortcut"] == ["sticker", "watermark", "frame", "colour"]
    assert "without background: --cues background takes images whose foreground is known" in console.said[0]
    assert [text.split(":")[1] for text in console.said] == [" without background", " without frequency", " on a CPU"]
    (tmp_path / "study.toml").write_text(study)
    configs = read_study(tmp_path / "study.toml")
    assert len(configs) == 3 * 4
    assert {config.options.debias for config in configs} == {"none", "droptop", "robust"}
    assert {config.droptop.gamma for config in configs if config.droptop} == {2.0}
    assert {(config.options.seeds, config.stream.image_size) for config in configs} == {(3, 8)}
    assert tomllib.loads(study)["net.width"] == 16  # so that it is the same study on any machine


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("--data fashion --cues stiker", "--cues takes sticker, watermark, frame, colour, background, frequency, not"),
        ("--data fashion --cues frame,fram", "not fram; did you mean frame?"),
        ("--data fashion --shortcut frame", "--shortcut is no option of stress, which takes --cues"),
        ("--data fashion --debias droptop --against robust", "--against is no option of stress"),
        ("--cues frame", "--data names the stream to paint on"),
        ("--data fashion --cues ,", "frequency, not an empty name"),
        ("--data fashion-sticker", "--cues takes a stream without a shortcut of its own beside it"),
        ("--data fashion --cues sticker --shortcut-size 40", "--shortcut-size takes pixels from 1 to 32, not 40"),
        ("--data fashion --shortcut-correlation 2", "--shortcut-correlation takes a number from 0 to 1"),
        ("--data fashion --cues colour --shortcut-size 4", "one of the shortcuts sticker, watermark, frame beside it"),
        ("--data fashion --widht 4", "did you mean --width"),
        ("--data fashion --cues", "--cues takes a value"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(args, says, tmp_path, capsys):
    assert main(["stress", "--out", str(tmp_path / "x"), *args.split()]) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert (len(said.err.splitlines()), said.out) == (1, "")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("--data mnist", "is a study of fashion by er, not of mnist by er: choose another --out"),
        ("--method derpp", "is a study of fashion by er, not of fashion by derpp: choose another --out"),
        ("--data fashion --width 8", "is a study of fashion by er with width 4, not of fashion by er with width 8: "),
        ("--limit None", "with limit 64, not of fashion by er with the usual limit: "),
        ("--seeds 0", "--seeds takes"),
        ("--first-seed 1", "not of fashion by er with first-seed 1: choose another --out; only more seeds, cues and"),
        ("--cues stiker", "did you mean sticker?"),
    ],
)
def test_a_folder_stays_the_study_it_is(study, args, says, tmp_path, capsys):
    out = tmp_path / "mine"
    shutil.copytree(study[0], out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert main(["stress", "--out", str(out), *args.split()]) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert (len(said.err.splitlines()), said.out) == (1, "")
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_a_study_without_cues_is_not_its_own(tmp_path, capsys):
    out = tmp_path / "swept"
    out.mkdir()
    write_study(out / "study.toml")
    for more in ([], ["--cues", "frame"]):
        assert main(["stress", "--out", str(out), *more]) == 2
        assert "swept is a study without cues, which `droptop sweep" in capsys.readouterr().err
    (out / "study.toml").write_text('"stream.shortcut" = "frame"')
    assert main(["stress", "--out", str(out), "--cues", "sticker"]) == 2
    assert "swept is a study that stress did not make" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "seeds", "cues", "arms"),
    [
        ("--seeds 3", 3, [], []),
        ("--cues sticker,frame", 1, ["sticker"], []),
        ("--debias droptop --gamma 2.0", 1, [], ["droptop"]),
        ("--data fashion --method er --debias decouple,robust --seeds=2 --width=4", 2, [], ["robust"]),
    ],
)
def test_more_seeds_cues_and_arms_are_added(study, args, seeds, cues, arms, tmp_path):
    out = study[0]
    file = tmp_path / "study.toml"
    file.write_text(grown(out, args.split(), Listening()))
    configs = read_study(file)
    assert set(requested_cells(out)) < set(cells_of(configs))
    told = {(config.stream.shortcut, config.options.debias, config.options.seeds) for config in configs}
    all_cues, all_arms = {"frame", "watermark", *cues}, {"none", "decouple", *arms}
    assert told == {(cue, arm, seeds) for cue in all_cues for arm in all_arms}
    assert {(config.options.limit, config.net.width, config.learner.memory) for config in configs} == {(64, 4, 20)}


def test_a_cue_is_added_to_what_is_done(study, tmp_path, capsys):
    out = tmp_path / "mine"
    shutil.copytree(study[0], out)
    before = digests(out)
    assert main(["stress", "--out", str(out), "--cues", "sticker"]) == 0
    said = capsys.readouterr().out
    assert "4 of 6 cells are done" in said
    assert said.count("sticker ") == 3  # in both tables
    assert before.items() < digests(out).items()
    assert len(digests(out)) == len(before) * 6 // 4


def test_a_finished_study_is_shown_where_its_images_are_gone(tmp_path, capsys):
    tests = {name: {"a": 2, "b": 2} for name in ("test", "test-nologo")}
    tree = write_tree(tmp_path / "tree", {"train": {"a": 40, "b": 40}, **tests})
    out = tmp_path / "mine"
    asked = ["stress", "--data", f"folder:{tree}", "--image-size", "16", "--cues", "frame", "--seeds", "1", *SMALL]
    assert main([*asked, "--out", str(out)]) == 0
    first = capsys.readouterr().out
    assert "also measured, without painted cues: nologo; `droptop results" in first
    assert "--by data,method,debias,shortcut`" in first  # no mean of several cues
    tree.rename(tmp_path / "moved")
    assert main(["stress", "--out", str(out)]) == 0
    again = capsys.readouterr().out
    assert again.startswith("1 of 1 cells are done\n")
    assert again.endswith(first[first.index("What a cue costs") :])


def test_help_tells_how_to_ask(capsys):
    assert main(["stress", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(flag in said for flag in ("--out", "--data", "--method", "--debias", "--cues", "--seeds", "--limit"))
