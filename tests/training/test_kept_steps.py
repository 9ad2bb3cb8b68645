"""Steps that are refilled with another seed give the bytes of fresh ones.

The captures of `Replayed` run on a CPU: what a graph would have as constants (numbers, texts, flags) is set back to
what it was at the capture while a replay runs; what it would know by address (tensors, generators) may not have moved.
"""

import pytest
import torch
from torch import Tensor

from droptop import Samples, Stream, StreamConfig
from droptop.methods import METHODS
from droptop.runs.config import configure, override
from droptop.streams import Position
from droptop.training import graphs
from droptop.training.evaluation import CHUNK
from droptop.training.graphs import GraphedSteps
from droptop.training.kept_steps import steps_key
from droptop.training.seed_run import blocks
from droptop.training.stepping import Steps

from contracts import over, over_variants
from toys import FLOAT_SPEC, SPEC, Elsewhere, differences, toy_batches, toy_learner

pytestmark = pytest.mark.filterwarnings("ignore:this learner has learned nothing")  # when predictions are captured

CONSTANT = (bool, int, float, str, type(None))


def constants(held, seen):
    """The places under an object that hold a constant: (container, key, value), each object once."""
    if id(held) in seen or isinstance(held, Tensor | torch.Generator | type):
        return
    seen[id(held)] = held
    places = held if isinstance(held, dict) else getattr(held, "__dict__", {})
    for key, value in list(places.items()) if isinstance(places, dict) else ():
        if isinstance(value, CONSTANT):
            yield places, key, value
        else:
            yield from constants(value, seen)
    for value in held if isinstance(held, list | tuple) else ():
        yield from constants(value, seen)


def addresses(learner):
    generators = {f"generator {name}": id(random) for name, random in learner.random.items()}
    return generators | {
        name: value.data_ptr()
        for name, value in learner.state_dict().items()
        if not name.startswith(("random.", "clock."))  # copies of what the host keeps
    }


class Replay:
    """Stands for a CUDA graph of `body`."""

    def __init__(self, learner, body):
        self.learner, self.body = learner, body
        self.constants, self.addresses = list(constants(learner, {})), addresses(learner)

    def replay(self):
        assert addresses(self.learner) == self.addresses
        now = [(places, key, places.get(key)) for places, key, _ in self.constants]
        for places, key, value in self.constants:
            places[key] = value
        self.body()
        for places, key, value in now:
            places[key] = value


class Replayed(GraphedSteps):
    """GraphedSteps whose captures run on a CPU, and make a mess of the learner as real ones do."""

    def capture(self, body, prepare=lambda: None):
        for _ in range(graphs.WARM_UP):
            prepare()
            body()
        return Replay(self.learner, body)


@pytest.fixture(autouse=True)
def without_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, 0))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)


def toy_stream(seed=0, batches=8, **options):
    parts = toy_batches(batches, tasks=2, seed=seed)
    x, y = (torch.cat([batch[part] for batch in parts]) for part in (0, 1))
    tests = {"clean": Samples(x[::3], y[::3])}
    return Stream("toy", SPEC, Samples(x, y), tests, StreamConfig(tasks=2, batch=8, **options), seed=seed)


def drive(steps, start=Position()):
    """The records of the rest of a stream, and what is predicted after every block of it."""
    records, stream = [], steps.stream
    for block in blocks(stream, start, 3, None):
        steps.queue(block.positions)
        records += [*steps.read(), steps.predict(stream.tests["clean"].x.repeat(12, 1, 1, 1)[: CHUNK["cpu"]]).tolist()]
    return records


def fresh(kind, method, seed, stream, **options):
    return kind(toy_learner(method, seed=seed, **options), stream, Position(), 3)


def state(steps):
    return {name: value.clone() for name, value in steps.learner.state_dict().items()}


@over([(method, arm) for method in METHODS for arm in ("none", "droptop", "robust")])
def test_refilled_steps_give_the_bytes_of_fresh_ones(method, options):
    """First one seed, then another one, of another number of batches, and then a third, from a checkpoint on."""
    kept = fresh(Replayed, method, 0, toy_stream(0), **options)
    drive(kept)
    where, captured = addresses(kept.learner), kept.step_graph

    stream = toy_stream(1, batches=10)
    expected = fresh(Steps, method, 1, stream, **options)
    learner = toy_learner(method, seed=1, **options)
    assert kept.fits(learner, stream)
    kept.refill(learner, stream, Position())
    assert repr(drive(kept)) == repr(drive(expected))  # NaN is itself here
    assert differences(state(kept), state(expected)) == []

    whole, half = toy_stream(2), toy_stream(2)
    half.order = [half.order[0], half.order[1][:0]]
    interrupted, expected = (fresh(Steps, method, 2, stream, **options) for stream in (half, whole))
    drive(interrupted)
    learner = toy_learner(method, seed=2, **options)
    learner.load_state_dict(state(interrupted))
    kept.refill(learner, whole, Position(1, 0))
    assert repr(drive(expected)).endswith(repr(drive(kept, Position(1, 0)))[1:])
    assert differences(state(kept), state(expected)) == []
    assert addresses(kept.learner) == where
    assert kept.step_graph is captured


@pytest.mark.faults
@over_variants
def test_refilled_steps_of_any_variant_give_the_bytes_of_fresh_ones(method, options):
    test_refilled_steps_give_the_bytes_of_fresh_ones(method, options)


@pytest.mark.parametrize("method", ["er", "gss"])
def test_ragged_batches_and_sources_elsewhere_are_filled_in(method):
    """A source on a disk, whose last batches are ragged, after one in memory; and the other way round."""
    whole, ragged = toy_stream(0), toy_stream(1, drop_last=False)
    ragged.order = [rows[:-3] for rows in ragged.order]
    ragged.train = Elsewhere(ragged.train)
    for first, second in ((whole, ragged), (ragged, whole)):
        kept, expected = fresh(Replayed, method, 0, first), fresh(Steps, method, 5, second)
        drive(kept)
        kept.refill(toy_learner(method, seed=5), second, Position())
        assert repr(drive(kept)) == repr(drive(expected))
        assert differences(state(kept), state(expected)) == []


@pytest.mark.parametrize("shortcut", ["sticker", "colour"])
def test_cues_are_painted_by_the_block(shortcut):
    """With the pixels of the cue where they are known, whose share of the dropped cells is recorded."""
    first, second = (toy_stream(seed, shortcut=shortcut) for seed in (0, 1))
    for stream in (first, second):
        stream.tests["clean"] = stream.tests["removed"]
    kept, expected = (fresh(kind, "er", 1, second, augment="none") for kind in (Replayed, Steps))
    kept.refill(toy_learner("er", seed=0, augment="none"), first, Position())
    drive(kept)
    kept.refill(toy_learner("er", seed=1, augment="none"), second, Position())
    assert ("shortcut" in kept.incoming) == (shortcut == "sticker")
    assert repr(drive(kept)) == repr(drive(expected))
    assert differences(state(kept), state(expected)) == []
    assert kept.fits(toy_learner("er", augment="none"), toy_stream()) == (shortcut == "colour")


def test_what_does_not_fit_is_seen():
    kept = fresh(Replayed, "er", 0, toy_stream(0))
    wider, known = toy_stream(1, batches=12), toy_stream(1)
    wider.config = StreamConfig(tasks=2, batch=12)
    assert not kept.fits(toy_learner("er", seed=1), wider)
    assert not kept.fits(toy_learner("er", seed=1, spec=FLOAT_SPEC), known)
    assert not kept.fits(toy_learner("derpp", seed=1), known)
    assert kept.fits(toy_learner("er", seed=1), known)
    prompts = fresh(Replayed, "l2p", 0, toy_stream(0))
    other = toy_learner("l2p", seed=1)
    other.frozen = other.frozen.flip(0)
    assert not prompts.fits(other, known)


NET = {"net": "timm:resnet18"}


@pytest.mark.parametrize(
    ("usual", "other"),
    [
        *(({}, other) for other in ({"lr": 0.2}, {"debias": "none"}, {"precision": "bf16"}, {"batch": 16})),
        *((NET, NET | other) for other in ({"pretrained": True}, {"first": "layer1"}, {"input_size": 96})),
    ],
)
def test_runs_that_differ_in_what_graphs_hold_share_no_steps(usual, other):
    """Whatever is not known to be filled in: options that come later too."""
    assert steps_key(configured(**other)) != steps_key(configured(**usual))


@pytest.mark.parametrize(
    "options", [{"limit": 64}, {"eval_every": 5}, {"tasks": 2}, {"seeds": 3}, {"shortcut": "frame"}]
)
def test_runs_that_differ_in_their_batches_share_steps(options):
    assert steps_key(configured(**options)) == steps_key(configured())


def configured(**options):
    return override(configure("fashion", "er", options.pop("debias", "droptop")), options)
