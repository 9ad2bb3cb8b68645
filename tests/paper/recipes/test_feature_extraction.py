"""A learner read back from its run, and its features statistics apart, against the net's last_layer forward pass."""

import numpy as np
import pytest
import torch

from droptop.errors import BadRequest
from droptop.paper.recipes.feature_definitions import figures
from droptop.paper.recipes.feature_extraction import features, features_of, head, load_seed_with_stream
from droptop.runs.config import configure
from droptop.runs.records import read_maps
from droptop.training.seed_run import SeedRun

OPTIONS = {
    "limit": 64,
    "width": 4,
    "memory": 40,
    "split": "1,0/7,3",
    "seeds": 3,
    "maps": 10,
    "maps_seeds": 2,
    "checkpoint_seconds": 1000.0,
}
CONFIG = configure("fashion-sticker", "er", "none", **OPTIONS)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    run = tmp_path_factory.mktemp("run")
    for seed in (1, 2):
        SeedRun(CONFIG, run, seed, lambda progress: None)()
    return run


@pytest.fixture(scope="module")
def loaded(run):
    return load_seed_with_stream(CONFIG, run, 1)


def test_the_head_takes_features_apart(loaded):
    stream, learner = loaded
    test, rows = stream.tests["biased"], torch.tensor([3, 250, 601, 1999])
    z = features(learner, test, rows)
    assert z.shape == (4, 32)
    classes = torch.tensor([1, 0, 7, 3])
    last_layer = head(learner, 32, classes)
    assert last_layer.weight == pytest.approx(learner.model.fc.weight.detach()[classes].numpy(), abs=1e-6)
    logits = learner.predict(test.x[rows])[:, classes].numpy()
    assert z @ last_layer.weight.T + last_layer.bias == pytest.approx(logits, abs=1e-4)


def test_the_statistics_of_what_was_taught_and_what_was_not(loaded):
    stream, learner = loaded
    statistics = features_of(learner, stream)
    test = stream.tests["biased"]
    rows = torch.isin(test.y, torch.tensor([0, 1, 3, 7]))
    with torch.no_grad():
        learner.model.eval()
        pooled = {
            name: learner.model.trunk(learner.model.stem(learner.normalise(part.x))).pooled.numpy()
            for name, part in (("biased", test), ("removed", stream.tests["removed"]))
        }
        learner.model.train()
    assert statistics.seen == pytest.approx(np.abs(pooled["biased"][rows]).mean(0), rel=1e-4, abs=1e-6)
    assert statistics.unseen == pytest.approx(np.abs(pooled["biased"][~rows]).mean(0), rel=1e-4, abs=1e-6)
    gone = np.abs(pooled["biased"] - pooled["removed"])[rows].mean(0)
    assert statistics.response == pytest.approx(gone, rel=1e-3, abs=1e-6)
    early = torch.isin(test.y, torch.tensor([0, 1]))
    answers = learner.predict(test.x[early]).argmax(1)
    assert statistics.mistaken == pytest.approx(torch.isin(answers, torch.tensor([3, 7])).float().mean().item())
    assert figures(statistics, 0, 0)["shortcuts"] == 100


def test_refuses_a_stream_that_leaves_no_class_out_and_a_run_without_checkpoints(loaded, tmp_path):
    stream, learner = loaded
    stream.tasks = (tuple(range(10)),)
    with pytest.raises(BadRequest, match="no class is unseen"):
        features_of(learner, stream)
    with pytest.raises(BadRequest, match="has no checkpoint yet"):
        load_seed_with_stream(CONFIG, tmp_path, 0)


def test_as_many_seeds_record_maps_as_asked(run):
    assert read_maps(run, 1) is not None  # the second of two
    assert read_maps(run, 2) is None
