"""What runs record for pictures is right, and recording it changes nothing."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from droptop import Samples
from droptop.debias import fuse
from droptop.nets import last_map, untracked
from droptop.runs.build import build_stream
from droptop.runs.config import configure
from droptop.runs.records import read_confusion, read_maps
from droptop.streams import Position
from droptop.training.attention_recorder import in_turn, maps_of
from droptop.training.seed_run import SeedRun, blocks

from toys import QUICK, differences, feed, snapshot, toy_batches, toy_learner

OPTIONS = {"limit": 96, "width": 4, "memory": 40, "tasks": 2, "seeds": 2, "checkpoint_seconds": 1000.0} | QUICK


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    run = tmp_path_factory.mktemp("run")
    for seed in (0, 1):
        SeedRun(configure("fashion-sticker", **OPTIONS), run, seed, lambda progress: None)()
    return run


def test_recording_maps_changes_no_other_file(run, tmp_path):
    SeedRun(configure("fashion-sticker", **OPTIONS | {"maps": 0}), tmp_path, 0, lambda progress: None)()
    assert not (tmp_path / "seed-0/maps").exists()
    for name in ("metrics.jsonl", "result.json", "checkpoints/step-000000006.safetensors"):
        assert (tmp_path / "seed-0" / name).read_bytes() == (run / "seed-0" / name).read_bytes()


def test_the_first_seed_records_the_middle_and_the_end_of_every_task(run):
    maps = read_maps(run, 0)
    assert [(moment.step, moment.task) for moment in maps.moments] == [(1, 0), (3, 0), (4, 1), (6, 1)]
    assert read_maps(run, 1) is None
    stream = build_stream(configure("fashion-sticker", **OPTIONS), 0)
    test, arrival = stream.tests["biased"], [label for task in stream.tasks for label in task]
    rows = [(test.y == label).nonzero()[turn, 0] for turn in range(7) for label in arrival][:64]
    assert maps.images.shape == (8, 32, 32, 3)
    assert np.array_equal(maps.images[5], test.x[rows[5]].permute(1, 2, 0))
    assert maps.labels.tolist() == test.y[torch.stack(rows)].tolist()
    assert maps.names == [stream.spec.classes[label] for label in maps.labels]
    cells = maps.moments[0].attention.shape[-1]
    pixels = test.shortcut[torch.stack(rows)].float().view(64, cells, 32 // cells, cells, 32 // cells)
    assert np.array_equal(maps.shortcut, pixels.mean((2, 4)))


@pytest.mark.parametrize(
    ("size", "every", "start"),
    [(60, None, Position()), (3, None, Position(1, 2)), (60, 4, Position()), (1, None, Position(2))],
)
def test_blocks_of_steps_end_where_maps_or_evaluations_are_due(size, every, start):
    steps = [9, 1, 4]
    stream = SimpleNamespace(tasks=steps, steps=lambda task: steps[task])
    found = list(blocks(stream, start, size, every))
    covered = [(block.task, batch) for block in found for batch in range(block.start, block.stop)]
    assert covered == [(task, batch) for task in range(3) for batch in range(steps[task]) if (task, batch) >= start]
    stops = {(block.task, block.stop) for block in found}
    assert stops >= {place for place in ((0, 4), (0, 9), (1, 1), (2, 2), (2, 4)) if place > start}
    assert max(block.stop - block.start for block in found) <= size


def test_images_come_one_per_class_in_turn():
    test = Samples(torch.zeros(7, 1, 1, 1), torch.tensor([0, 0, 0, 1, 2, 2, 0]))
    assert in_turn(test, [2, 0, 1], 20).tolist() == [4, 0, 3, 5, 1, 2, 6]
    assert in_turn(test, [1, 0], 3).tolist() == [3, 0, 1]


def test_confusion_agrees_with_the_evaluations(run):
    for seed in (0, 1):
        lines = [json.loads(line) for line in (run / f"seed-{seed}/metrics.jsonl").read_text().splitlines()]
        ends = [line for line in lines if line.get("task_end")]
        records = read_confusion(run, seed)
        assert [(record.step, record.task) for record in records] == [(3, 0), (6, 1)]
        for line, record in zip(ends, records):
            assert record.counts.keys() == line["eval"].keys()
            for test, counts in record.counts.items():
                groups = line["eval"][test].values()
                assert counts.sum(1).tolist() == np.sum([group["n"] for group in groups], 0).tolist()
                assert counts.diagonal().tolist() == np.sum([group["correct"] for group in groups], 0).tolist()
        assert set(records[0].counts["biased"].nonzero()[1]) <= set(range(5))  # predicted among the classes seen


@pytest.mark.parametrize(
    ("method", "debias", "options"),
    [
        ("er", "none", {}),
        ("er", "droptop", {}),
        ("er", "no-fusion", {}),
        ("er", "random", {}),
        ("er", "fixed", {}),
        ("er", "droptop", {"mask": "soft", "gamma": 10.0}),
        ("er", "droptop", {"reference": True}),
        ("l2p", "droptop", {}),
        ("dualprompt", "none", {}),
    ],
)
def test_recording_leaves_the_learner_as_it_was(method, debias, options):
    learner = feed(toy_learner(method, debias, **options), toy_batches(6))
    before = snapshot(learner)
    x, y, _ = toy_batches(1, seed=1)[0]
    maps = maps_of(learner, Samples(x, y), seed=0)
    assert differences(before, snapshot(learner)) == []
    with torch.no_grad(), untracked(learner.model):
        first = learner.model.stem(learner.normalise(x))
        last = last_map(learner.model, first, *learner.given(learner.model, first, {}))
    if debias == "no-fusion":
        upsampled = torch.nn.functional.interpolate(last.mean(1, keepdim=True), first.shape[-2:], mode="bilinear")
        assert torch.allclose(maps["attention"], upsampled[:, 0])
    else:
        assert torch.equal(maps["attention"], fuse(first, last))
    assert ("dropped" in maps) == (debias != "none")
    if debias == "none":
        return
    cells = maps["attention"][0].numel()
    total = int(learner.debias.droptop.config.gamma * cells / 100 + 0.5)
    for label, attention, dropped in zip(y.tolist(), maps["attention"].flatten(1), maps["dropped"].flatten(1)):
        top = int(float(learner.debias.droptop.intensity.kappa[label]) * cells / 100 + 0.5)
        highest = sorted(range(cells), key=lambda cell: -float(attention[cell]))[:top]
        gone = set(dropped.nonzero()[:, 0].tolist())
        if options.get("mask") == "soft":  # the weakest of the top cells keeps all of its strength
            highest = highest[:-1]
            assert len(gone) == total - (top > 0)
        else:
            assert len(gone) == total
        assert set(highest) <= gone


def test_damaged_records_are_left_out(run, tmp_path):
    shutil.copytree(run / "seed-0/maps", tmp_path / "seed-0/maps")
    damaged = tmp_path / "seed-0/maps/step-000000003.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    assert [moment.step for moment in read_maps(tmp_path, 0).moments] == [1, 4, 6]
    (tmp_path / "seed-0/maps/images.safetensors").write_bytes(b"no such file")
    assert read_maps(tmp_path, 0) is None
    assert read_confusion(tmp_path / "nowhere", 0) == []
