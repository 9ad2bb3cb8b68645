"""A run folder on another machine: its learner comes back without the data, and says what evaluation said."""

import json
import re
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import droptop
from droptop import BadRequest, load_learner
from droptop.cli import main
from droptop.nets import ViTConfig, build
from droptop.runs import checkpoint
from droptop.runs.config import configure
from droptop.runs.requests import begin
from droptop.training.seed_run import SeedRun

from pictures import picture, save, write_tree
from plans import plan
from toys import QUICK, SMALL_VIT

OPTIONS = {"image_size": 16, "width": 4, "stem": "3x3", "memory": 20, "batch": 8, "seeds": 2, "first_seed": 3} | QUICK


def train(config, out, command="run", seeds=None):
    """What the real command leaves, without its processes."""
    asked = plan(config, command)
    begin(asked, out)
    for run, arm in asked.folders(out).items():
        run.mkdir(exist_ok=True)
        (run / "config.toml").write_text(plan(arm).toml())
        for seed in seeds or config.seeds:
            SeedRun(arm, run, seed, lambda progress: None)()


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """A comparison whose images are no longer where they were."""
    home = tmp_path_factory.mktemp("trained")
    tree = write_tree(
        home / "tree", {"train": dict.fromkeys("abcd", 16), "test": dict.fromkeys("abcd", 9)}, size=(23, 18)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DROPTOP_CACHE", str(home / "cache"))
        train(configure(f"folder:{tree}", "er", **OPTIONS), home / "first", "compare")
    shutil.rmtree(home / "cache")
    (home / "tree").rename(home / "elsewhere")
    return home / "first", home / "elsewhere/test"


def last_evaluation(run, seed):
    lines = (run / f"seed-{seed}/metrics.jsonl").read_text().splitlines()
    [evaluation] = json.loads(lines[-1])["eval"].values()
    return evaluation["all"]["correct"]


def predicted(capsys, *args):
    assert main(["predict", *map(str, args), "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return [json.loads(line) for line in said.out.splitlines()]


@pytest.mark.parametrize(
    ("place", "flags", "truth"),
    [
        ("", [], ("droptop", 3)),
        ("", ["--arm", "none", "--seed", "4"], ("none", 4)),
        ("none/seed-4", [], ("none", 4)),
        ("droptop", ["--seed", "4"], ("droptop", 4)),
    ],
)
def test_predictions_are_those_of_the_evaluation(moved, capsys, place, flags, truth):
    run, images = moved
    answers = predicted(capsys, run / place, images, "--top", "4", *flags)
    assert [answer["file"] for answer in answers] == [str(path) for path in sorted(images.rglob("*.png"))]
    right = [sum(answer["class"] == name for answer in answers if f"/{name}/" in answer["file"]) for name in "abcd"]
    assert right == last_evaluation(run / truth[0], truth[1])
    for answer in answers:
        assert answer["top"][0] == {"class": answer["class"], "confidence": answer["confidence"]}
        assert sorted(each["class"] for each in answer["top"]) == list("abcd")
        assert sum(each["confidence"] for each in answer["top"]) == pytest.approx(1, abs=1e-5)


def test_load_learner_predicts_in_python(moved):
    run, _ = moved
    learner = load_learner(run, arm="none")
    assert learner.debias.droptop is None
    assert load_learner(str(run)).debias.droptop is not None
    assert learner.spec == droptop.Spec(
        (3, 16, 16), tuple("abcd"), mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)
    )
    before = {name: value.clone() for name, value in learner.state_dict().items()}
    tensors, _ = checkpoint.read(checkpoint.newest_first(run / "none/seed-3/checkpoints")[0])
    assert all(torch.equal(before[name], tensors[name]) for name in tensors)  # to be trained further, if anybody likes


def test_broken_files_are_named_and_the_others_predicted(moved, capsys, tmp_path):
    run, _ = moved
    for number, size in enumerate([(40, 16), (16, 16), (9, 30)]):
        save(picture(number, size), tmp_path / f"{number}.bmp")
    save(picture(7).convert("L"), tmp_path / "below/grey.webp")
    (tmp_path / "torn.JPG").write_bytes(b"no image")
    (tmp_path / ".hidden.png").write_bytes(b"nor this")
    (tmp_path / "notes.txt").write_text("nor this")
    assert main(["predict", str(run), str(tmp_path), str(tmp_path / "1.bmp")]) == 1
    said = capsys.readouterr()
    assert re.fullmatch(rf"droptop: {tmp_path}/torn.JPG does not decode: [^\n]+\n", said.err)
    assert "er, droptop, on folder:" in said.out
    assert "next best" in said.out
    assert len(re.findall(r"\d+\.\d%", said.out)) == 2 * 4


def test_files_none_of_which_decodes_are_a_request_that_cannot_be_met(moved, capsys, tmp_path):
    (tmp_path / "mk.py").write_text("print(1)")
    assert main(["predict", str(moved[0]), str(tmp_path / "mk.py")]) == 2
    assert "mk.py does not decode" in capsys.readouterr().err


def test_a_run_of_one_class_predicts_it(moved, capsys, tmp_path):
    run, _ = moved
    save(picture(0), tmp_path / "a.png")
    assert main(["predict", str(run), str(tmp_path / "a.png"), "--top", "1"]) == 0
    assert "next best" not in capsys.readouterr().out


def test_maps_are_drawn_per_image(moved, capsys, tmp_path):
    run, images = moved
    save(Image.open(images / "a/0.png"), tmp_path / "0.png")
    answers = predicted(capsys, run, tmp_path / "0.png", images / "b", images / "a/0.png", "--maps", tmp_path / "maps")
    assert len(answers) == 11
    names = sorted(path.name for path in (tmp_path / "maps").iterdir())
    assert names == sorted([*(f"{number}.png" for number in range(9)), "0-2.png", "0-3.png"])
    first, again = (np.asarray(Image.open(tmp_path / "maps" / name)) for name in ("0.png", "0-3.png"))
    assert np.array_equal(first, again)  # the same image under another name, in the same company
    alone = predicted(capsys, run, tmp_path / "0.png", "--maps", tmp_path / "alone")
    assert alone[0]["class"] == answers[0]["class"]
    apart = np.asarray(Image.open(tmp_path / "alone/0.png")).astype(int) - first
    assert np.abs(apart).max() <= 1  # BatchNorm goes by what it has learned, not by the company
    side = 224
    assert first.shape == (side, 2 * side + 4, 3)
    from droptop.data.image_files import load

    seen = load(tmp_path / "0.png", (3, 16, 16)).permute(1, 2, 0).numpy()
    assert np.array_equal(first[:side, :side], seen.repeat(side // 16, 0).repeat(side // 16, 1))


def test_an_unfinished_run_predicts_and_says_so(moved, capsys, tmp_path):
    run, images = moved
    shutil.copytree(run, tmp_path / "run")
    folder = tmp_path / "run/droptop/seed-3"
    (folder / "result.json").unlink()
    assert main(["predict", str(folder), str(images / "a"), "--json"]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 9
    assert said.err == (
        f"note: {folder} is not finished: this is the learner after 8 steps, which has seen 4 of 4 classes\n"
    )
    (folder / "checkpoints/step-000000099.json").write_text("{}")
    assert main(["predict", str(folder), str(images / "a"), "--json"]) == 0
    assert "step-000000099.json is damaged; going back to what was before it\n" in capsys.readouterr().err
    for header in checkpoint.newest_first(folder / "checkpoints"):
        header.with_suffix(".safetensors").write_bytes(b"gone")
    assert main(["predict", str(folder), str(images / "a")]) == 1
    assert "no checkpoint in" in capsys.readouterr().err
    shutil.rmtree(folder / "checkpoints")
    assert main(["predict", str(folder), str(images / "a")]) == 2
    assert capsys.readouterr().err == f"droptop: {folder} has no checkpoint yet\n"


def test_a_learner_of_another_device_begins_its_draws_anew(moved, tmp_path):
    """Generators of a GPU have other states; the rest of what was learned does not care."""
    run, _ = moved
    shutil.copytree(run / "droptop", tmp_path / "run")
    places = tmp_path / "run/seed-3/checkpoints"
    tensors, about = checkpoint.read(checkpoint.newest_first(places)[0])
    there = {
        name: torch.zeros(16, dtype=torch.uint8) if name.startswith("random.") else value
        for name, value in tensors.items()
    }
    checkpoint.write(places, checkpoint.step_name(99), there, about)
    images = torch.randint(0, 256, (5, 3, 16, 16), dtype=torch.uint8)
    assert torch.equal(load_learner(tmp_path / "run").predict(images), load_learner(run).predict(images))


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ("RUN", "predict takes images"),
        ("RUN nowhere.png", "there is no image nowhere.png"),
        ("RUN HERE/empty", "holds no images"),
        ("nowhere IMAGES", "nowhere is not an existing folder"),
        ("HERE IMAGES", "is not a run folder"),
        ("RUN IMAGES --arm random", "--arm takes one of none, droptop, not random"),
        ("RUN/none IMAGES --arm droptop", "--arm takes none"),
        ("RUN IMAGES --seed 0", "--seed takes one of 3, 4"),
        ("RUN/none/seed-3 IMAGES --seed 4", "--seed takes 3"),
        ("RUN IMAGES --top 0", "--top takes"),
        ("RUN IMAGES --maps HERE", "--maps takes a new or empty folder"),
        ("RUN IMAGES --device tpu", "--device takes"),
        ("RUN IMAGES --weights w", "--weights takes nothing with --method er"),
        ("STUDY IMAGES", "is a study"),
    ],
)
def test_impossible_requests_are_refused(moved, tmp_path, capsys, args, names):
    run, images = moved
    (tmp_path / "here/empty").mkdir(parents=True)
    (tmp_path / "study").mkdir()
    (tmp_path / "study/study.toml").touch()
    for word, path in {"RUN": run, "HERE": tmp_path / "here", "IMAGES": images, "STUDY": tmp_path / "study"}.items():
        args = args.replace(word, str(path))
    assert main(["predict", *args.split()]) == 2
    said = capsys.readouterr()
    assert names in said.err
    assert re.fullmatch(r"droptop: [^\n]+\n", said.err)
    assert said.out == ""


def test_frozen_weights_may_lie_elsewhere(tmp_path):
    model = build(ViTConfig(patch=4, width=16, depth=5, heads=2, input_size=16), 3, 7, 0, "random")
    save_file(model.state_dict(), tmp_path / "vit.safetensors")
    options = SMALL_VIT | {"weights": str(tmp_path / "vit.safetensors"), "limit": 32, "tasks": 1, "seeds": 1}
    train(configure("fashion", "l2p", "none", **options), tmp_path / "run")
    (tmp_path / "vit.safetensors").rename(tmp_path / "moved.safetensors")
    with pytest.raises(BadRequest, match="--weights takes an existing file"):
        load_learner(tmp_path / "run")
    learner = load_learner(tmp_path / "run", weights=str(tmp_path / "moved.safetensors"))
    test = droptop.make_stream("fashion").tests["clean"]
    assert droptop.evaluate(learner, test)["all"]["correct"] == last_evaluation(tmp_path / "run", 0)
    (tmp_path / "run/seed-0/spec.json").unlink()  # as in runs of old: what is built in need not be told
    assert load_learner(tmp_path / "run", weights=str(tmp_path / "moved.safetensors")).spec == learner.spec
    with torch.no_grad():
        model.norm.bias += 1
    save_file(model.state_dict(), tmp_path / "others.safetensors")
    with pytest.raises(BadRequest, match="--weights is another file"):
        load_learner(tmp_path / "run", weights=str(tmp_path / "others.safetensors"))
