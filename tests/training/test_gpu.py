"""On a GPU: graphs give what eager steps give, seeds together what they give one by one, and resuming loses nothing."""

import hashlib

import pytest
import torch

from droptop import Samples, Spec, Stream, StreamConfig
from droptop.methods import METHODS
from droptop.nets import allow_tf32
from droptop.runs.config import configure
from droptop.streams import Position
from droptop.streams.cues import CUES
from droptop.training.concurrent_seeds import ConcurrentSeeds
from droptop.training.device_stream import on_device
from droptop.training.evaluation import predict_test
from droptop.training.graphs import GraphedSteps, Uncapturable
from droptop.training.seed_run import SeedRun, blocks
from droptop.training.stepping import Steps
from droptop.training.workers import prepare

from contracts import over_variants
from toys import QUICK, SPEC, Elsewhere, differences, toy_batches, toy_learner

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


@pytest.fixture(autouse=True)
def deterministic():
    """Kernels that always add in the same order: what differs then differs by our doing."""
    prepare("cuda", deterministic=True, precision="tf32")
    yield
    prepare("cuda", deterministic=False, precision="tf32")


def toy_stream(**options):
    batches = toy_batches(16, tasks=2)
    x, y = (torch.cat([batch[part] for batch in batches]) for part in (0, 1))
    return Stream("toy", SPEC, Samples(x, y), {}, StreamConfig(tasks=2, batch=8, **options), seed=0)


def drive(kind, method, stream, start=Position(), state=None, **options):
    """The learner and the records after a whole stream on a CUDA stream of its own."""
    with torch.cuda.stream(torch.cuda.Stream()):
        learner = toy_learner(method, device="cuda", **options)
        if state is not None:
            learner.load_state_dict(state)
        steps, records = kind(learner, on_device(stream, learner.device), start, 5), []
        for block in blocks(stream, start, 5, None):
            for batch in range(block.start, block.stop):
                steps.advance(Position(block.task, batch))
            records += steps.read()
        torch.cuda.synchronize()
    return {name: value.cpu().clone() for name, value in learner.state_dict().items()}, records


@over_variants
def test_graphs_are_eager_steps_to_the_bit(method, options):
    stream = toy_stream()
    eager, graphed = (drive(kind, method, stream, **options) for kind in (Steps, GraphedSteps))
    assert differences(eager[0], graphed[0]) == []
    assert repr(eager[1]) == repr(graphed[1])  # NaN is itself here


@pytest.mark.parametrize("shortcut", [name for name, cue in CUES.items() if not cue.masked])
@pytest.mark.parametrize("others", [0, 40])
def test_graphs_paint_what_eager_steps_paint(shortcut, others):
    """Cues of few and of many classes are painted within the graph: to the bit what eager steps paint."""
    if shortcut == "frequency" and others:
        pytest.skip("images of 16 pixels have no waves for so many classes")
    plain = toy_stream()
    spec = Spec(SPEC.shape, (*SPEC.classes, *(f"other {number}" for number in range(others))))
    size = 3 if shortcut == "sticker" and others else None  # a sticker for so many classes has a pattern
    config = StreamConfig(tasks=2, batch=8, split="0,1/2,3", shortcut=shortcut, shortcut_size=size)
    stream = Stream("toy", spec, plain.train, {}, config, seed=0)
    eager, graphed = (drive(kind, "er", stream, augment="none") for kind in (Steps, GraphedSteps))
    assert differences(eager[0], graphed[0]) == []
    assert repr(eager[1]) == repr(graphed[1])
    host = stream.train[torch.arange(8)]
    device = on_device(stream, torch.device("cuda")).train[torch.arange(8, device="cuda")]
    assert (host.x.int() - device.x.cpu().int()).abs().max() <= 1  # a cosine may round otherwise
    assert torch.equal(host.follows, device.follows.cpu())


@pytest.mark.parametrize("method", METHODS)
def test_graphs_without_deterministic_kernels_stay_close(method):
    """The first losses, relative to eager ones: sums in another order, which a short run of a toy already amplifies."""
    prepare("cuda", deterministic=False, precision="fp32")
    stream = toy_stream()
    eager, graphed = (drive(kind, method, stream, debias="none", augment="none")[1] for kind in (Steps, GraphedSteps))
    assert [record.loss for record in graphed[:3]] == pytest.approx([record.loss for record in eager[:3]], rel=1e-2)


@pytest.mark.parametrize("method", ["er", "gss"])
def test_ragged_batches_and_sources_elsewhere(method):
    ragged = toy_stream(drop_last=False)
    ragged.order = [rows[:-3] for rows in ragged.order]
    eager, graphed = (drive(kind, method, ragged) for kind in (Steps, GraphedSteps))
    assert differences(eager[0], graphed[0]) == []
    ragged.train = Elsewhere(ragged.train)
    elsewhere = drive(GraphedSteps, method, ragged)
    assert differences(eager[0], elsewhere[0]) == []


@pytest.mark.parametrize("method", METHODS)
def test_a_checkpoint_goes_on_through_graphs(method):
    """Half of it by graphs, the other half by graphs of a learner that was built with another seed."""
    stream = toy_stream()
    whole, _ = drive(GraphedSteps, method, stream)
    half = toy_stream()
    half.order = [half.order[0], half.order[1][:0]]
    first, _ = drive(GraphedSteps, method, half)
    rest, _ = drive(GraphedSteps, method, stream, Position(1, 0), first, seed=1)
    assert differences(whole, rest) == []


@pytest.mark.parametrize("method", METHODS)
def test_what_graphs_predict_is_what_eager_passes_predict(method):
    """Before and after the weights have changed, for whole passes and for one that is filled up."""
    stream, generator = toy_stream(), torch.Generator().manual_seed(0)
    test = Samples(
        torch.randint(0, 256, (1037, *SPEC.shape), dtype=torch.uint8, generator=generator),
        torch.randint(0, len(SPEC.classes), (1037,), generator=generator),
    )
    stream.tests = {"clean": test}
    with torch.cuda.stream(torch.cuda.Stream()):
        learner = toy_learner(method, device="cuda")
        steps = GraphedSteps(learner, on_device(stream, learner.device), Position(), 5)
        for batch in range(4):
            steps.advance(Position(0, batch))
            steps.read()
            eager = predict_test(learner, test, lambda x: Steps.predict(steps, x))
            graphed = predict_test(learner, test, steps.predict)
            assert torch.equal(eager.predicted, graphed.predicted)
            assert len(eager.predicted) > 0
        assert steps.predict_graph is not None


def test_a_learner_that_waits_for_the_device_cannot_be_captured():
    learner = toy_learner(device="cuda")
    step = learner.step
    learner.step = lambda x, y: step(x, y) * float(y.sum().item() > -1)
    with torch.cuda.stream(torch.cuda.Stream()), pytest.raises(Uncapturable, match=r"captur"):
        GraphedSteps(learner, on_device(toy_stream(), learner.device), Position(), 5)
    torch.rand(1, device="cuda")  # the device's own generator is as it was


def test_a_run_that_cannot_be_captured_runs_eagerly_and_says_so(tmp_path, monkeypatch):
    class Waits(METHODS["er"]):
        def loss(self, logits, batch):
            return super().loss(logits, batch) * float(batch.y.sum().item() > -1)

    [expected] = runs(tmp_path / "er", [0])
    expected()
    monkeypatch.setitem(METHODS, "er", Waits)
    notes: list[str] = []
    [run] = runs(tmp_path / "waits", [0])
    run.warn = notes.append
    run()
    assert "runs eagerly: it cannot be captured" in notes[0]
    assert digests(tmp_path / "waits") == digests(tmp_path / "er")


def runs(folder, seeds, debias="droptop", **options):
    config = configure(
        "fashion-sticker",
        "er",
        debias,
        device="cuda",
        deterministic=True,
        limit=160,
        width=8,
        **(QUICK if debias != "none" else {}) | options,
    )
    return [SeedRun(config, folder, seed, lambda progress: None) for seed in seeds]


def digests(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for name in ("metrics.jsonl", "result.json")
        for path in sorted(folder.glob(f"seed-*/{name}"))
    }


def test_concurrent_seeds_give_the_same_bits(tmp_path):
    for name, most in (("together", 3), ("apart", 1)):
        list(ConcurrentSeeds(runs(tmp_path / name, range(3)), "cuda", most=most).finished())
    assert len(digests(tmp_path / "together")) == 6
    assert digests(tmp_path / "together") == digests(tmp_path / "apart")


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path, precision):
    list(ConcurrentSeeds(runs(tmp_path / "whole", range(2), precision=precision), "cuda").finished())
    stopped = runs(tmp_path / "parts", range(2), precision=precision)
    for run in stopped:
        asked = iter([False, False, True])
        run.stop = lambda asked=asked: next(asked, True)
    for run in stopped:
        with pytest.raises(Exception, match="stopped at step"):
            run()
    list(ConcurrentSeeds(runs(tmp_path / "parts", range(2), precision=precision), "cuda").finished())
    assert digests(tmp_path / "whole") == digests(tmp_path / "parts")


def test_bf16_is_close_to_fp32():
    allow_tf32("cuda", "fp32")
    torch.manual_seed(0)
    learners = {p: toy_learner(device="cuda", debias="none", width=16) for p in ("fp32", "bf16")}
    from droptop.nets import compute_in

    for precision, learner in learners.items():
        compute_in(learner.model, SPEC.shape, precision)
    x, y, _ = toy_batches(1)[0]
    losses = {p: learner.observe(x, y).item() for p, learner in learners.items()}
    assert losses["bf16"] == pytest.approx(losses["fp32"], rel=0.02)
    weights = [learner.model.fc.weight for learner in learners.values()]
    assert weights[1].dtype == torch.float32
    torch.testing.assert_close(weights[0], weights[1], rtol=0.05, atol=0.01)


@pytest.mark.parametrize("method", ["l2p", "dualprompt"])
def test_prompt_learners_in_bf16_are_close_to_fp32(method):
    from droptop.nets import compute_in

    allow_tf32("cuda", "fp32")
    losses = {}
    for precision in ("fp32", "bf16"):
        learner = toy_learner(method, device="cuda", debias="none", augment="none")
        compute_in(learner.model, SPEC.shape, precision)
        losses[precision] = [learner.observe(x, y, task).item() for x, y, task in toy_batches(4)]
        assert all(weight.dtype == torch.float32 for weight in learner.weights.values())
    assert losses["bf16"] == pytest.approx(losses["fp32"], rel=0.1, abs=0.1)
