"""A cue on any stream: the same image has the same cue whenever and however it is read, and the stored one stays."""

import json
from types import SimpleNamespace

import pytest
import torch

from droptop import BadBatch, BadRequest, Samples, Spec, Stream, StreamConfig, accuracy, evaluate, learn, make_stream
from droptop.cli import main
from droptop.runs.config import configure
from droptop.runs.requests import begin
from droptop.streams import Position
from droptop.streams.cues import CUES
from droptop.streams.painted import Painted, paint_batches
from droptop.training.device_stream import on_device
from droptop.training.seed_run import Interrupted, SeedRun
from droptop.types import in_memory

from pictures import write_tree
from plans import plan
from toys import SPEC, Elsewhere, toy_batches, toy_learner

EVERYWHERE = [name for name, cue in CUES.items() if not cue.masked]
SETS = ["biased", "removed", "random"]


def toy_samples(count=20):
    batches = toy_batches(count)
    return Samples(*(torch.cat([batch[part] for batch in batches]) for part in (0, 1)))


def toy_stream(source=None, seed=0, **options):
    source = toy_samples() if source is None else source
    options = {"shortcut": "sticker", "tasks": 2, "batch": 8} | options
    return Stream("toy", SPEC, source, {"test": toy_samples(4), "other": toy_samples(5)}, StreamConfig(**options), seed)


def rows_of(*rows):
    return torch.tensor(rows)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_an_image_has_one_cue_in_any_order_batch_and_source(name):
    stream, shuffled = toy_stream(shortcut=name), torch.randperm(160)
    whole = stream.train[torch.arange(160)]
    again = toy_stream(Elsewhere(toy_samples()), shortcut=name).train
    for rows in (shuffled, rows_of(3), rows_of(9, 9, 2)):
        for source in (stream.train, again):
            part = source[rows]
            assert torch.equal(part.x, whole.x[rows])
            assert torch.equal(part.follows, whole.follows[rows])
            assert part.shortcut is None or torch.equal(part.shortcut, whole.shortcut[rows])
    assert torch.equal(stream.train[torch.arange(160) >= 150].x, whole.x[150:])
    assert torch.equal(stream.train[rows_of(-1)].x, whole.x[159:])
    assert not torch.equal(toy_stream(shortcut=name, seed=1).train[shuffled].x, whole.x[shuffled])
    assert torch.equal(stream.train.source.x, toy_samples().x)  # what is stored stays as it is


def test_batches_from_the_middle_are_those_of_the_whole():
    for source in (toy_samples(), Elsewhere(toy_samples())):
        stream = toy_stream(source)
        whole, rest = list(stream), list(stream.batches(Position(1, 3)))
        assert all(
            torch.equal(a.x, b.x) and torch.equal(a.shortcut, b.shortcut) for a, b in zip(whole[-len(rest) :], rest)
        )
        assert len(rest) == stream.steps(1) - 3
        assert in_memory(stream.train) == isinstance(source, Samples)


@pytest.mark.parametrize("correlation", [0.0, 0.4, 1.0])
def test_test_sets_tell_followers_and_contradictors(correlation):
    stream = make_stream("fashion", shortcut="frame", shortcut_correlation=correlation)
    every = {name: test[torch.arange(2000)] for name, test in stream.tests.items()}
    assert list(every) == SETS
    assert every["removed"].follows is every["removed"].shortcut is None
    assert every["biased"].follows.float().mean().item() == pytest.approx(correlation, abs=0.04)
    assert every["random"].follows.float().mean().item() == pytest.approx(0.1, abs=0.03)
    train = stream.train[torch.arange(12_000)]
    assert train.follows.float().mean().item() == pytest.approx(correlation, abs=0.02)
    for test in ("biased", "random"):
        inside = ~every[test].shortcut[:, None].expand(-1, 3, -1, -1)
        assert torch.equal(every[test].x[inside], every["removed"].x[inside])
    assert torch.equal(every["removed"].x, make_stream("fashion").tests["clean"].x)


def test_the_first_test_set_is_painted_and_others_stay():
    stream = toy_stream()
    assert list(stream.tests) == [*SETS, "other"]
    assert torch.equal(stream.tests["other"].x, toy_samples(5).x)
    held = toy_stream(hold_out=25.0)
    assert list(held.tests) == SETS
    assert len(held.tests["biased"]) == len(held.tests["removed"]) > 30


def test_evaluation_knows_who_follows():
    stream, learner = toy_stream(shortcut_correlation=0.5), toy_learner("er", augment="none")
    for batch in stream:
        learner.observe(batch.x, batch.y, batch.task)
    groups = evaluate(learner, stream.tests["biased"])
    follows = stream.tests["biased"][torch.arange(32)].follows
    assert sum(groups["follow"]["n"]) == int(follows.sum())
    assert sum(groups["contradict"]["n"]) == int((~follows).sum())
    assert 0 <= accuracy(groups) <= 100


def test_a_background_lies_behind_what_masks_show(tmp_path):
    """Of a folder with masks, in memory and read from the disk; the foreground is what the masks show at that size."""
    tree = write_tree(
        tmp_path / "tree", {"train": dict.fromkeys("abcd", 6), "test": dict.fromkeys("abcd", 3)}, masks=True
    )
    for part in ("train", "test"):
        (tree / "original" / part).rename(tree / part)
    options = {"image_size": 12, "batch": 2, "shortcut": "background"}
    stream = make_stream(f"folder:{tree}", **options)
    plain = make_stream(f"folder:{tree}", image_size=12, batch=2)
    front = (plain.tests["only_fg"].x > 0).any(1)  # pictures have no black
    test = stream.tests["biased"][torch.arange(12)]
    assert torch.equal(test.shortcut, ~front)
    seen = front[:, None].expand_as(test.x)
    assert torch.equal(test.x[seen], plain.tests["original"].x[seen])
    assert list(stream.tests)[:3] == SETS
    assert "only_fg" in stream.tests
    on_disk = make_stream(f"folder:{tree}", in_memory_mb=0, **options)
    assert not in_memory(on_disk.train)
    rows = torch.randperm(24)
    assert torch.equal(on_disk.train[rows].x, stream.train[rows].x)
    held = make_stream(f"folder:{tree}", hold_out=50.0, drop_last=False, **options)
    kept = held.held.nonzero()[:, 0]
    every = torch.arange(len(kept))
    removed, biased = held.tests["removed"][every], held.tests["biased"][every]
    assert torch.equal(removed.x, plain.train.x[kept])
    in_front = ~biased.shortcut[:, None].expand_as(biased.x)
    assert torch.equal(biased.x[in_front], removed.x[in_front])
    assert torch.equal(biased.shortcut, stream.train[kept].shortcut)
    (tree / "masks/train/b/1.png").unlink()
    with pytest.raises(BadRequest, match=r"train/b/1\.png has no mask"):
        make_stream(f"folder:{tree}", **options)


def test_the_stored_images_are_not_copied(monkeypatch):
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(synchronize=lambda: None))
    stream = toy_stream()
    first = stream.tests["biased"].source
    assert first is stream.tests["removed"]
    assert first is stream.tests["random"].source
    assert isinstance(stream.train, Painted)
    moved = on_device(stream, torch.device("meta"))  # every tensor goes along: images, labels and what cues need
    assert moved.train.source.x.device.type == "meta"
    assert {table.device.type for table in moved.train.painter.tables.values()} == {"meta"}
    assert moved.labels.device.type == moved.order[0].device.type == "meta"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"shortcut": "stickr"}, "--shortcut takes none or one of sticker, .* not stickr; did you mean sticker"),
        (
            {"shortcut": "none", "shortcut_correlation": 0.5},
            "--shortcut-correlation takes a --shortcut beside it, not 0.5",
        ),
        ({"shortcut": "sticker", "shortcut_correlation": 1.1}, "--shortcut-correlation takes a number from 0 to 1"),
        ({"shortcut": "sticker", "shortcut_strength": 0.0}, "--shortcut-strength takes a number above 0 and up to 1"),
        ({"shortcut": "sticker", "shortcut_strength": float("nan")}, "--shortcut-strength takes a number above 0"),
        ({"shortcut": "sticker", "shortcut_size": 17}, "--shortcut-size takes pixels from 1 to 16, not 17"),
        ({"shortcut": "colour", "shortcut_size": 4}, "one of the shortcuts sticker, watermark, frame beside it"),
        ({"shortcut": "none", "shortcut_size": 4}, "--shortcut-size takes a --shortcut beside it"),
        ({"shortcut": "background"}, "foreground is known, by masks; these have none"),
    ],
)
def test_what_cannot_be_painted_is_refused(options, said):
    with pytest.raises(BadRequest, match=said):
        toy_stream(**options)


def test_a_stream_with_a_shortcut_takes_no_other():
    with pytest.raises(BadRequest, match="--shortcut takes a stream without a shortcut of its own"):
        configure("fashion-sticker", shortcut="frame")
    samples = toy_samples()
    own = Samples(samples.x, samples.y, torch.ones(160, dtype=torch.bool))
    with pytest.raises(BadRequest, match="without a shortcut of their own"):
        toy_stream(own)
    config, tests = StreamConfig(tasks=2, batch=8, shortcut="frame"), {"test": samples, "random": samples}
    with pytest.raises(BadRequest, match="makes a test set random, and there is one already"):
        Stream("toy", SPEC, samples, tests, config, 0)


def test_any_iterable_is_painted_by_its_pixels():
    batches, tests = toy_batches(20), {"test": toy_samples(4)}
    painted, measured = paint_batches(batches, tests, SPEC, "sticker", correlation=0.8)
    painted = list(painted)
    assert list(measured) == SETS
    assert [(len(batch), batch[2]) for batch in painted] == [(3, batch[2]) for batch in batches]
    singly = [(x[None], y[None]) for x, y in zip(*batches[4][:2])]
    alone, _ = paint_batches(singly, {}, SPEC, "sticker", correlation=0.8)
    assert torch.equal(torch.cat([x for x, _ in alone]), painted[4][0])
    changed = torch.cat([(a[0] != b[0]).any(1).flatten(1).sum(1) for a, b in zip(painted, batches)])
    assert ((changed > 0) & (changed <= 4)).all()  # a sticker of 2 x 2 on images of 16 x 16
    assert torch.equal(batches[4][0], toy_batches(20)[4][0])
    history = learn(toy_learner("er", augment="none"), painted, measured)
    assert set(history.evaluations) == set(SETS)
    for wrong, said in (("none", "--shortcut takes one of"), ("background", "a stream with masks")):
        with pytest.raises(BadRequest, match=said):
            paint_batches(batches, tests, SPEC, wrong)
    with pytest.raises(BadBatch, match="batch 1: "):
        list(paint_batches([batches[0], (batches[1][0], [1])], {}, SPEC, "frame")[0])


def test_grey_images_of_ones_own():
    grey = Samples(toy_samples().x[:, :1], toy_samples().y)
    spec = Spec((1, 16, 16), tuple("abcd"))
    config = StreamConfig(tasks=2, batch=8, shortcut="watermark")
    stream = Stream("grey", spec, grey, {"test": grey}, config, 0)
    assert next(iter(stream)).x.shape == (8, 1, 16, 16)
    with pytest.raises(BadRequest, match="--shortcut sticker paints in colours"):
        Stream("grey", spec, grey, {}, StreamConfig(tasks=2, batch=8, shortcut="sticker"), 0)


def test_a_run_measures_a_cue_and_goes_on_with_it(tmp_path):
    """The share of dropped cells on it, followers and contradictors; stopped on the way, to the same bytes."""
    config = configure("fashion", shortcut="frame", limit=64, width=4, memory=40, split="0,1/2,3", maps=0)
    for name, stops in (("whole", False), ("stopped", True)):
        begin(plan(config), tmp_path / name)
        if stops:
            with pytest.raises(Interrupted):
                SeedRun(config, tmp_path / name, 0, lambda progress: None, stop=lambda: True)()
        SeedRun(config, tmp_path / name, 0, lambda progress: None)()
    whole, stopped = ((tmp_path / name / "seed-0/metrics.jsonl").read_bytes() for name in ("whole", "stopped"))
    assert whole == stopped
    shares = [line["dropped"]["chance"] for line in map(json.loads, whole.splitlines()) if "dropped" in line]
    assert shares == pytest.approx([1 - (28 / 32) ** 2] * 4, abs=1e-6)
    result = json.loads((tmp_path / "whole/seed-0/result.json").read_text())
    assert list(result["tests"]) == SETS
    assert result["tests"]["biased"]["contradict"] is not None
    assert 'shortcut = "frame"' in (tmp_path / "whole/config.toml").read_text()


def test_a_cue_that_does_not_fit_is_refused_before_anything_is_written(tmp_path, capsys):
    asked = ["--data", "fashion", "--shortcut", "frame", "--shortcut-size", "16", "--out", str(tmp_path / "no")]
    assert main(["run", *asked]) == 2
    assert not (tmp_path / "no").exists()
    said = "--shortcut-size takes pixels from 1 to 15, which leave something to see, not 16"
    assert capsys.readouterr().err == f"droptop: {said}\n"


def test_rows_out_of_range_are_refused_and_slices_are_taken():
    painted = toy_stream().train
    assert torch.equal(painted[2:5].x, painted[rows_of(2, 3, 4)].x)
    assert torch.equal(painted[rows_of(-160, 3)].x, painted[rows_of(0, 3)].x)
    for rows in (rows_of(160), rows_of(-161), torch.ones(159, dtype=torch.bool), torch.ones(3)):
        with pytest.raises(BadBatch, match="rows"):
            painted[rows]
