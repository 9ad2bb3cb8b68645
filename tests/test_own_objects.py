"""Streams and models of a user's own in run, compare and resume."""

import textwrap

import pytest
import torch

import droptop
from droptop import BadRequest, Samples
from droptop.bench.costs import passes_of
from droptop.cli import main
from droptop.debias import fuse
from droptop.learner_attention import attention_of
from droptop.runs.build import build_learner, build_stream
from droptop.runs.config import configure
from droptop.runs.own_objects import handed_over
from droptop.streams import user_stream
from droptop.system.user_files import name_of
from droptop.types import Subset

from compasses import FILE, OWN, SMALL, compass
from models import ResNet
from toys import differences, snapshot


def metrics(run, *seeds):
    return [(run / f"seed-{seed}/metrics.jsonl").read_bytes() for seed in seeds]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "compass.py"
    path.write_text(textwrap.dedent(FILE))
    return path


# -- Streams ----------------------------------------------------------------------------------------------------------


def test_a_stream_again_is_the_one_made_anew():
    """With other options, those of labels and of tests among them."""
    options = {"tasks": 4, "batch": 5, "label_noise": 20.0, "blurry": 10.0, "shortcut": "frame"}
    first = compass(3, hold_out=25.0, shortcut="sticker")
    list(first)  # so that orders and labels are there to be taken over by mistake
    again, anew = first.again(droptop.StreamConfig(**options), 7, 20), compass(7, **options)
    anew = droptop.Stream("compass", anew.spec, anew.given.train, anew.given.tests, anew.config, 7, 20)
    assert again.tests.keys() == anew.tests.keys() > {"removed", "random"}
    batches = list(zip(again, anew, strict=True))
    assert len(batches) == 16
    assert all(torch.equal(a.x, b.x) and torch.equal(a.y, b.y) and a.task == b.task for a, b in batches)
    rows = torch.arange(24)
    assert all(torch.equal(again.tests[name][rows].x, anew.tests[name][rows].x) for name in anew.tests)


def test_images_that_are_made_are_not_made_otherwise():
    sticker = droptop.make_stream("fashion-sticker", limit=32)
    with pytest.raises(BadRequest, match=r"correlation is 0\.95 in fashion-sticker, whose images are made already"):
        droptop.run(sticker, "er", None, correlation=0.5, width=4, out="nowhere")


def test_an_object_is_learned_as_in_a_loop_of_ones_own(tmp_path):
    droptop.run(compass(9), "er", "droptop", width=4, tasks=4, out=tmp_path / "out", **SMALL | {"seeds": 2})
    stream = compass(1, tasks=4)
    options = {name: SMALL[name] for name in ("memory", "memory_batch")}
    learner = droptop.make_learner("er", stream, "droptop", seed=1, width=4, **options)
    for x, y, task, _ in stream:
        learner.observe(x, y, task)
    loaded = droptop.load_learner(tmp_path / "out", seed=1)  # which needs no stream
    assert differences(snapshot(learner), snapshot(loaded)) == []


def test_a_file_gives_the_same_as_an_object(file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    assert main(["run", "--data", "compass.py", "--width", "4", *flags, "--out", "file"]) == 0
    assert "er on compass, 1 seed" in capsys.readouterr().out
    droptop.run(compass(), width=4, out="object", **SMALL)
    assert metrics(tmp_path / "file", 0) == metrics(tmp_path / "object", 0)
    assert f'data = "{file}:compass"' not in (tmp_path / "file/config.toml").read_text()
    assert main(["report", "file"]) == 0
    file.unlink()
    for command in (["status", "file"], ["resume", "file"], ["report", "file"], ["report", "object"]):
        assert main(command) == 0
    capsys.readouterr()
    assert main(["resume", "file", "--seeds", "2"]) == 2
    assert "file needs compass.py, which is gone; file/files/compass.py (SHA-256 " in capsys.readouterr().err
    assert droptop.load_learner("file").seen.all()


class Breaking(Subset):
    """A source that Ctrl-C is pressed at when some batch is read."""

    left = None

    def __getitem__(self, rows):
        if len(rows) == 8 and Breaking.left is not None:
            Breaking.left -= 1
            if Breaking.left == 0:
                raise KeyboardInterrupt
        return super().__getitem__(rows)


def test_an_interrupted_run_of_an_object_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    def broken(seed, **options):
        train = lambda x, y: Breaking(Samples(x, y), torch.arange(len(y)))  # noqa: E731
        return compass(seed, train=train, **options)

    threads = torch.get_num_threads()
    droptop.run(broken, "er", "droptop", width=4, out=tmp_path / "straight", **SMALL)
    monkeypatch.setattr(Breaking, "left", 9)
    with pytest.raises(KeyboardInterrupt):
        droptop.run(broken, "er", "droptop", width=4, out=tmp_path / "out", **SMALL)
    assert torch.get_num_threads() == threads
    monkeypatch.setattr(Breaking, "left", None)
    assert not (tmp_path / "out/seed-0/result.json").exists()
    droptop.resume(tmp_path / "out", data=broken)
    assert metrics(tmp_path / "out", 0) == metrics(tmp_path / "straight", 0)
    droptop.resume(tmp_path / "out", 2, data=broken(5))  # an object of the same images
    droptop.resume(tmp_path / "straight", 2, data=broken)
    assert metrics(tmp_path / "out", 1) == metrics(tmp_path / "straight", 1)


def test_another_stream_is_refused_and_none_is_asked_for(tmp_path, capsys):
    out = tmp_path / "out"
    droptop.run(compass(), "finetune", None, width=4, out=out, limit=8, seeds=1)
    with pytest.raises(BadRequest, match=r"--data object:compass is not what .* began with: its SHA-256 is another"):
        droptop.resume(out, seeds=2, data=compass(shift=1))
    assert main(["resume", str(out), "--seeds", "2"]) == 2
    said = capsys.readouterr().err
    assert "--data object:compass was an object in Python" in said
    assert "droptop.resume(FOLDER, data=...) hands it over again" in said
    assert not (out / "seed-1").exists()
    assert main(["resume", str(out)]) == 0


@pytest.mark.parametrize("change", ["image", "label", "test", "name", "follows", "groups"])
def test_the_hash_of_a_stream_tells_any_change(change):
    def sha256(stream):
        return user_stream.sha256(user_stream.Maker("object:x", stream))

    a, b = compass(0), compass(4, tasks=4)
    assert sha256(a) == sha256(b)  # orders and options are others, images and labels are not
    train, tests = b.train, dict(b.tests)
    if change == "image":
        train.x[95, 2, 15, 15] += 1
    elif change == "label":
        train.y[95] -= 1
    elif change == "test":
        tests["test"].x[0, 0, 0, 0] += 1
    elif change == "name":
        tests = {"other": tests["test"]}
    elif change == "groups":
        train = Samples(train.x, train.y, groups=["land", "sea"] * 48)
    else:
        train = Samples(train.x, train.y, follows=torch.ones(96, dtype=torch.bool))
    assert sha256(droptop.Stream("compass", b.spec, train, tests, b.config, 0)) != sha256(a)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1", "the file defines no function of a seed that gives a Stream"),
        ("def a(seed): pass\ndef b(seed): pass\ndef c(): pass", "the file defines a, b; choose one: FILE:a"),
        ("def a(seed):\n    return 5", "gives an int, not a droptop.Stream"),
        ("def a(seed):\n    return 1 / seed", "line 2: ZeroDivisionError: division by zero"),
        ("import nothing_of_the_kind", "line 1: ModuleNotFoundError"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path, capsys, text, reason):
    file = tmp_path / "bad.py"
    file.write_text(text)
    assert main(["run", "--data", str(file), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert reason.replace("FILE", str(file)) in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_one_of_several_streams_is_chosen_by_name_and_files_beside_it_are_imported(file, tmp_path):
    (tmp_path / "beside_the_stream.py").write_text("SHIFT = 1\n")
    file.write_text(
        file.read_text()
        + "\nfrom beside_the_stream import SHIFT\n\ndef other(seed):\n    return compass(seed + SHIFT)\n"
    )
    chosen = build_stream(configure(f"{file}:other", limit=8), 0)
    assert chosen.name == "compass"
    assert chosen.config.batch == 8
    assert user_stream.maker(str(file)).given.__name__ == "compass"  # the one that says it gives a Stream


def test_only_what_stands_at_the_top_of_a_file_has_a_name():
    assert name_of(lambda seed: None) is None
    assert name_of(compass(0)) is None
    assert name_of(compass).endswith("/tests/compasses.py:compass")
    assert name_of(ResNet).endswith("/tests/models.py:ResNet")
    assert name_of(ResNet.forward) is None


# -- Models -----------------------------------------------------------------------------------------------------------


def learner_of(model, seed, debias="droptop"):
    with handed_over(data=compass(), model=model) as names:
        config = configure(names["data"], "er", debias, model=names["model"], **OWN)
        return build_learner(config, build_stream(config, seed), seed), passes_of(config)


def test_a_model_is_copied_and_a_function_makes_one_per_seed():
    model, before = ResNet(), torch.get_rng_state()
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    for given in (model, lambda: ResNet()):
        (a, _), (b, _), (plain, _) = (learner_of(given, *of) for of in ((0,), (1,), (0, "none")))
        states = [each.model.net.state_dict() for each in (a, b, plain)]
        same = [all(torch.equal(states[0][name], other[name]) for name in weights) for other in states]
        assert same == [True, given is model, True]
    learner_of(model, 0)[0].observe(*next(iter(compass()))[:3])
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), before)


def test_attention_and_passes_are_those_of_the_model():
    """Of its two maps, with BatchNorm by the batch, as for a net of droptop's."""
    learner, passes = learner_of(ResNet(), 0)
    _, plain = learner_of(ResNet(), 0, "none")
    images, net = compass().train.x[:8], learner.model.net
    statistics = snapshot(learner)
    seen = attention_of(learner, images)
    assert differences(statistics, snapshot(learner)) == []
    net.train()
    with torch.no_grad():
        first = net.maxpool(net.relu(net.bn1(net.conv1(learner.normalise(images)))))
        assert torch.equal(seen, fuse(first, net.layer4(net.layer1(first))))
    config = configure("fashion", "er", "droptop", width=4, **SMALL | {"batch": 8})
    bare = configure("fashion", "er", "none", width=4, **SMALL | {"batch": 8})
    assert (passes, plain) == pytest.approx((passes_of(config), passes_of(bare)))


def test_a_comparison_of_a_model_goes_on_and_is_loaded(tmp_path, capsys):
    model, out = ResNet(), tmp_path / "out"
    found = droptop.compare(compass(), model=model, out=out, **OWN)
    assert found["arms"]["droptop"]["data"] == "object:compass"
    with pytest.raises(BadRequest, match=r"--model object:ResNet is not what .* began with"):
        droptop.resume(out, 2, data=compass(), model=ResNet(width=8))
    again = droptop.resume(out, 2, data=compass(), model=model)
    assert again["arms"]["none"]["seeds"] == [0, 1]
    images = compass().train.x[:5]
    logits = droptop.load_learner(out, model=model).predict(images)
    assert logits.isfinite().all()
    assert main(["predict", str(out), str(tmp_path / "none.png")]) == 2
    with pytest.raises(BadRequest, match=r"droptop.load_learner\(FOLDER, model=...\) hands it over again"):
        droptop.load_learner(out)
    capsys.readouterr()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"data": 5}, "data takes a name, a Stream, or a function of a seed that gives one, not an int"),
        ({"data": ResNet}, "data takes a name, a Stream, .* not the class ResNet"),
        ({"model": 5}, "model takes a torch.nn.Module, or a function or class that makes one, not an int"),
        ({"model": lambda: 5}, "gives an int, not a torch.nn.Module"),
        ({"model": ResNet, "width": 8}, "--width is for nets that droptop builds"),
        ({"model": ResNet, "method": "l2p", "weights": "random"}, "takes a ViT by --weights, not a model"),
        ({"model": ResNet, "first": None}, "model takes first and last beside it"),
        ({"model": "resnet"}, "--model takes a Python file such as"),
        ({"first": "stem"}, "--first takes the name of a submodule of --model"),
        ({"data": lambda seed: 5}, "gives an int, not a droptop.Stream"),
    ],
)
def test_what_is_no_stream_or_model_is_refused_before_anything_is_written(given, says, tmp_path):
    usual = {"data": compass(), "first": "maxpool", "last": "layer4", "out": tmp_path / "out"}
    options = usual | given if "model" in given else {"out": tmp_path / "out"} | given
    with pytest.raises(BadRequest, match=says):
        droptop.run(**options)
    assert not (tmp_path / "out").exists()
