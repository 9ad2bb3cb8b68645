"""On a GPU: graphs give what eager steps give, seeds together what they give one by one, and resuming loses nothing."""

import hashlib

import pytest
import torch

from droptop import Samples, Spec, Stream, StreamConfig
from droptop.debias import members_of
from droptop.methods import METHODS
from droptop.nets import allow_tf32
from droptop.runs import checkpoint
from droptop.runs.config import configure
from droptop.streams import Position
from droptop.streams.cues import CUES
from droptop.training.concurrent_seeds import ConcurrentSeeds
from droptop.training.device_stream import on_device
from droptop.training.evaluation import predict_test
from droptop.training.graphs import GraphedSteps, Uncapturable
from droptop.training.kept_steps import KeptSteps
from droptop.training.observer import Job, Observer
from droptop.training.seed_run import Interrupted, SeedRun, blocks
from droptop.training.stepping import Steps
from droptop.training.worker_pool import WorkerPool, dealt
from droptop.training.workers import prepare

from contracts import over, over_variants
from toys import QUICK, SPEC, Elsewhere, differences, droptop, feed, small, toy_batches, toy_learner

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
            steps.queue(block.positions)
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


def commanded(out, device):
    """The digests of a folder that a command made, with a process per GPU."""
    small = ["--limit", "160", "--width", "8", "--maps", "0", "--seeds", "3", "--deterministic"]
    quick = [token for name, value in QUICK.items() for token in (f"--{name}", str(value))]
    done = droptop("run", *small, *quick, "--device", device, "--out", out, timeout=500)
    assert done.returncode == 0, done.stderr
    return digests(out)


def test_a_named_gpu_and_all_gpus_give_the_bits_of_the_default_one(tmp_path):
    """By the real command; on a machine with several GPUs of one kind, too."""
    usual = commanded(tmp_path / "cuda", "cuda")
    assert len(usual) == 6
    last = f"cuda:{torch.cuda.device_count() - 1}"
    for device in dict.fromkeys(["cuda:0", last, "cuda:all"]):
        assert commanded(tmp_path / device.replace(":", "-"), device) == usual, device
    again = droptop("resume", tmp_path / "cuda", "--device", "cuda:all", "--seeds", "4", timeout=500)
    assert again.returncode == 0, again.stderr
    more = digests(tmp_path / "cuda")
    assert len(more) == 8
    assert more | usual == more


def test_two_workers_give_the_bits_of_one(tmp_path):
    """On one GPU as well: two processes share it, each bound to it."""
    config = runs(tmp_path, [0])[0].config
    for name, gpus in (("one", ["cuda:0"]), ("two", ["cuda:0", "cuda:0"])):
        jobs = [Job(config, tmp_path / name, seed) for seed in range(3)]
        WorkerPool(Observer(), dealt([jobs], len(gpus))).run(1, gpus)
    assert len(digests(tmp_path / "one")) == 6
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


def test_a_learner_on_a_named_gpu_is_the_one_on_the_default_gpu():
    last = f"cuda:{torch.cuda.device_count() - 1}"
    learners = [feed(toy_learner(device=device), toy_batches(8)) for device in ("cuda", "cuda:0", last)]
    states = [{name: value.cpu() for name, value in learner.state_dict().items()} for learner in learners]
    assert differences(states[0], states[1]) == differences(states[0], states[2]) == []
    assert learners[2].memory.size.device == torch.device(last)


@over([(method, arm) for method in METHODS for arm in ("none", "droptop", "robust")])
def test_refilled_steps_give_the_bits_of_fresh_ones(tmp_path, method, options):
    """Seeds one after the other by the same steps, the second of which was stopped before; and each by its own."""
    more = {name: value for name, value in small(method).items() if name != "augment"} | options
    arm, debias = {name: value for name, value in more.items() if name != "debias"}, more.get("debias", "droptop")
    refilled, kept = method_runs(tmp_path / "kept", method, debias, **arm), KeptSteps("cuda")
    stopped = method_runs(tmp_path / "kept", method, debias, **arm)[1]
    asked = iter([False] if METHODS[method].tasks is None else [])  # a single task is stopped in its middle
    stopped.stop = lambda: next(asked, True)
    with pytest.raises(Interrupted):
        stopped()
    for run in refilled:
        run.kept = kept
        run()
        assert kept.steps is not None
        assert isinstance(kept.steps, GraphedSteps)
    captured = kept.steps.step_graph
    for run in method_runs(tmp_path / "apart", method, debias, **arm):
        run()
    assert kept.steps.step_graph is captured
    assert len(digests(tmp_path / "apart")) == 6
    assert digests(tmp_path / "kept") == digests(tmp_path / "apart")
    assert last_tensors(tmp_path / "kept") == last_tensors(tmp_path / "apart")


def method_runs(folder, method, debias, **options):
    """Runs of three seeds of the built-in images, whose painted cues differ."""
    quick = QUICK if "droptop" in members_of(debias) else {}
    tasks = METHODS[method].tasks or 2
    config = configure(
        *("fashion-sticker", method, debias),
        **{"device": "cuda", "deterministic": True, "limit": 96, "tasks": tasks} | quick | options,
    )
    return [SeedRun(config, folder, seed, lambda progress: None) for seed in range(3)]


def last_tensors(folder):
    """The SHA-256 of the tensors of every seed's last checkpoint."""
    return [
        checkpoint.read_header(checkpoint.newest_first(seed / "checkpoints")[0])["sha256"]
        for seed in sorted(folder.glob("seed-*"))
    ]


def test_seeds_share_steps_by_kind_and_leave_them_where_they_fail(tmp_path, monkeypatch):
    """Two kinds of three seeds each, two at once, of which one diverges: two captures, and one for the steps
    that were thrown away; the others' bits are those that they have apart."""
    captures, init = [], GraphedSteps.__init__
    monkeypatch.setattr(
        GraphedSteps, "__init__", lambda steps, *given: (captures.append(steps), init(steps, *given))[1]
    )
    together = [*runs(tmp_path / "a", range(3)), *runs(tmp_path / "b", range(3), debias="none")]
    check = together[1].check_finite

    def diverge(record, step, position):
        check(record._replace(finite=record.finite and step < 4), step, position)

    together[1].check_finite = diverge
    failed = []
    concurrent = ConcurrentSeeds(together, "cuda", most=2, failed_alone=lambda run, error: failed.append(run))
    done = list(concurrent.finished())
    assert (len(done), failed) == (5, [together[1]])
    assert len(captures) == 3
    monkeypatch.undo()
    for run in (*runs(tmp_path / "c", (0, 2)), *runs(tmp_path / "d", range(3), debias="none")):
        run()
    whole = {name: value for name, value in digests(tmp_path / "a").items() if "seed-1/" not in name}
    assert whole == digests(tmp_path / "c")
    assert digests(tmp_path / "b") == digests(tmp_path / "d")


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
