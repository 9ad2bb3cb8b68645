"""What every learner promises, with and without debiasing.

A method joins by its name in `METHODS`, a debiaser by its name in `MEMBERS`: every method meets all debiasers at once,
the arm `family`, and ER each of them alone.
"""

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from droptop import BadBatch, Diverged
from droptop.debias import MEMBERS, members_of
from droptop.methods import METHODS
from droptop.methods.frozen import Frozen
from droptop.methods.views import TwoViews
from droptop.recipes import recipe_of
from droptop.runs import checkpoint

from toys import CLASSES, FLOAT_SPEC, differences, feed, small, snapshot, toy_batches, toy_learner

FAMILY = "+".join(["average", *MEMBERS])
KEPT = {"kept": {"memory_attention": "kept"}}
FILE = str(Path(__file__).parent / "debias/fog.py")
ARMS: dict[str, dict[str, Any]] = {"none": {"debias": "none"}, "droptop": {}, "family": {"debias": FAMILY}}
ALONE: dict[str, dict[str, Any]] = {
    name: {"debias": debias}
    for name, debias in {
        **{name: name for name in MEMBERS if name not in ARMS},
        **{name: name for name in ("average", "robust", "robust+droptop")},
        "file": FILE,
    }.items()
}
VARIANTS: dict[str, dict[str, Any]] = {
    "no-fusion": {"debias": "no-fusion"},
    "random": {"debias": "random"},
    "fixed": {"debias": "fixed"},
    "soft": {"mask": "soft"},
    "common": {"per": "common"},
    "algorithm2": {"shift": "algorithm2"},
    "by-task": {"p_counter": "task", "period": 2},
    "small-probe": {"probe": 8},
    "reference": {"reference": True},
    "separate": {"replay_forward": "separate"},
    "momentum": {"momentum": 0.9, "weight_decay": 1e-4},
    "iterations": {"iterations": 2},
    "constant": {"drop": "constant", "kappa_0": 2.0},
    "plain-images": {"augment": "none"},
    "family-reference": {"debias": FAMILY, "reference": True},
    "family-separate": {"debias": FAMILY, "replay_forward": "separate"},
    "family-iterations": {"debias": FAMILY, "iterations": 2},
}
# What single methods have besides.
OF_METHODS: dict[str, dict[str, Any]] = {"published": {"sampling": "published"}}
OWN_FAMILY = "+".join(["average", *(name for name, kind in MEMBERS.items() if not kind.needs_logits)])
OWN = {  # with a model of somebody's own
    "own": {"own": True},
    "own-reference": {"own": True, "reference": True},
    "own-family": {"own": True, "debias": OWN_FAMILY},
}
STRENGTHS = ("gamma", "weight", "share", "percent")  # options of a debiaser that make it nothing where they are 0
TOUCHING = ("reference", "separate", "iterations")  # the variants that change how a method's own parts are called


FROZEN = [name for name, kind in METHODS.items() if issubclass(kind, Frozen)]
SHARING = ("scr", "pcr", "ncm", "slda")  # of MKD's base and of RanPAC's: these two meet debiasers, the others by hand
MEMORYLESS = ["finetune", "joint", *FROZEN]


def options_of(method, name):
    """The options of an arm or variant, with the debiasers that the method takes."""
    options = (ARMS | KEPT | ALONE | VARIANTS | OWN | OF_METHODS)[name]
    if "debias" not in options:
        return options
    members = options["debias"].split("+")
    taken = [member for member in members if member not in MEMBERS or METHODS[method].takes(MEMBERS[member])]
    return options | {"debias": "+".join(taken)}


def over(cases):
    by_hand = {case for case in cases if case[0] in SHARING and case[1] != "none"}
    return pytest.mark.parametrize(
        ("method", "options"),
        [
            pytest.param(
                *(method, options_of(method, name)),
                id=f"{method}-{name}",
                marks=pytest.mark.faults if (method, name) in by_hand else (),
            )
            for method, name in cases
        ],
    )


EVERYONE = [
    *((method, arm) for method in METHODS for arm in ARMS),
    *(("er", name) for name in (*ALONE, *OWN)),
    *((method, "kept") for method in ("er", "mir", "mkd", "l2p")),  # a ResNet, two more of its methods, and a ViT
]
over_learners = over([case for case in EVERYONE if case[1] != "own-reference"])
over_debiased = over([case for case in EVERYONE if case[1] not in ("none", "own-reference")])
over_each_alone = over([case for case in EVERYONE if case[1] not in ("none", "family", "own-reference")])
over_variants = over(
    [*EVERYONE, ("mir", "own"), ("aser", "published")]
    + [
        (method, name)
        for method in METHODS
        for name in (VARIANTS if method == "er" else TOUCHING)
        if method not in FROZEN or name != "reference"  # nothing is trained in two directions
    ]
)


@over_variants
def test_resumes_exactly(method, options, tmp_path):
    batches = toy_batches(10)
    straight, kept = toy_learner(method, **options), {}
    for step, batch in enumerate(batches):
        if step in (4, 7):  # in the first task, and in the second
            checkpoint.write(tmp_path, checkpoint.step_name(step), straight.state_dict(), {})
            kept[step] = checkpoint.read(tmp_path / f"{checkpoint.step_name(step)}.json")[0]
        straight.observe(*batch)
    for step, state in kept.items():
        resumed = toy_learner(method, seed=1, **options)  # another seed: nothing of it may be left
        resumed.load_state_dict(state)
        feed(resumed, batches[step:])
        assert differences(straight.state_dict(), resumed.state_dict()) == []


@over_learners
def test_never_exceeds_its_memory(method, options):
    learner = toy_learner(method, memory=10, **options)
    batches = toy_batches(8)
    for step, (x, y, task) in enumerate(batches):
        learner.observe(x, y, task)
        assert learner.memory.size <= min(10, 8 * (step + 1))
        assert all(len(rows) == 10 + 1 for rows in learner.memory.rows.values())
    assert (learner.memory.size == 10) != (method in MEMORYLESS)
    offered = {row.numpy().tobytes(): int(label) for x, y, _ in batches for row, label in zip(x, y)}
    size = int(learner.memory.size)
    for row, label in zip(learner.memory.rows["x"][:size], learner.memory.rows["y"][:size]):
        assert offered[row.numpy().tobytes()] == int(label)


@over_learners
def test_prediction_changes_no_state(method, options):
    learner = feed(toy_learner(method, **options), toy_batches(5))
    before = snapshot(learner)
    x, _, _ = toy_batches(1, seed=3)[0]
    first = learner.predict(x)
    assert torch.equal(first, learner.predict(x))
    assert learner.independent
    assert torch.allclose(first[:3], learner.predict(x[:3]), atol=1e-5)  # no sample helps another
    assert learner.model.training
    assert differences(before, learner.state_dict()) == []


@over_learners
def test_predicts_only_classes_it_has_seen(method, options):
    learner = feed(toy_learner(method, **options), toy_batches(6)[:3])  # the first task: classes 0 and 1
    logits = learner.predict(toy_batches(1)[0][0])
    assert logits[:, :2].isfinite().all()
    assert (logits[:, 2:] == -math.inf).all()


@over_learners
def test_the_seed_decides_every_byte(method, options):
    batches = toy_batches(8)
    states = [feed(toy_learner(method, seed=seed, **options), batches).state_dict() for seed in (5, 5, 6)]
    assert differences(states[0], states[1]) == []
    assert differences(states[0], states[2]) != []


@over_learners
def test_leaves_the_global_generator_alone(method, options):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    feed(toy_learner(method, **options), toy_batches(4)).predict(toy_batches(1)[0][0])
    assert torch.equal(before, torch.get_rng_state())


def strengths(debias):
    """The options of debiasers that are strengths, by path; every debiaser must have one."""
    found = {
        name: [f"{name}.{field.name}" for field in dataclasses.fields(kind.config_type) if field.name in STRENGTHS]
        for name, kind in members_of(debias).items()
    }
    assert all(found.values()), "a debiaser has an option that makes it nothing: name it in STRENGTHS"
    return [path for paths in found.values() for path in paths]


def as_plain(options):
    """The options of the same arm without debiasing, with the iterations that a recipe brings."""
    iterations = recipe_of(options.get("debias", "droptop")).factors.get("iterations", 1)
    shared = {name: value for name, value in options.items() if name not in KEPT["kept"]}
    return {"iterations": iterations} | shared | {"debias": "none"}


@over_debiased
def test_debiasing_of_no_strength_is_no_debiasing(method, options):
    """To the bit; and averaged weights, which `average` adds, are nothing to training."""
    batches = toy_batches(10)
    plain = feed(toy_learner(method, **as_plain(options)), batches).state_dict()
    shared = [name for name in plain if name != "random.debias"]
    zeros = dict.fromkeys(strengths(options.get("debias", "droptop")), 0.0)
    nothing = feed(toy_learner(method, **options | zeros), batches).state_dict()
    assert set(shared) <= nothing.keys()
    assert differences({name: plain[name] for name in shared}, {name: nothing[name] for name in shared}) == []


@over_each_alone
def test_debiasing_changes_something(method, options):
    batches, x = toy_batches(10), toy_batches(1, seed=3)[0][0]
    plain, debiased = (feed(toy_learner(method, **each), batches) for each in (as_plain(options), options))
    assert not torch.equal(plain.predict(x), debiased.predict(x))


def bad_batches():
    x, y, _ = toy_batches(1, spec=FLOAT_SPEC)[0]
    nan, inf = x.clone(), x.clone()
    nan[3, 1, 2, 2], inf[0, 0, 0, 0] = math.nan, math.inf
    return {
        "nan": (nan, y),
        "inf": (inf, y),
        "label too high": (x, y + CLASSES),
        "negative label": (x, y - 10),
        "float labels": (x, y.float()),
        "too few labels": (x, y[:-1]),
        "wrong size": (x[..., :-1], y),
        "wrong dtype": (x.double(), y),
        "bytes": ((x * 255).to(torch.uint8), y),
        "empty": (x[:0], y[:0]),
        "no batch": (x[0], y[0]),
        "a list": (x.tolist(), y),
    }


@over_learners
def test_a_poisoned_batch_changes_nothing(method, options):
    learner = feed(toy_learner(method, spec=FLOAT_SPEC, **options), toy_batches(5, spec=FLOAT_SPEC))
    before = snapshot(learner)
    for name, (x, y) in bad_batches().items():
        with pytest.raises(BadBatch):
            learner.observe(x, y)
        assert differences(before, learner.state_dict()) == [], name


@over_variants
def test_a_loss_that_is_not_finite_changes_nothing_but_the_draws(method, options):
    learner = feed(toy_learner(method, spec=FLOAT_SPEC, **options), toy_batches(5, spec=FLOAT_SPEC))
    before = snapshot(learner)
    x, y, _ = toy_batches(1, spec=FLOAT_SPEC)[0]
    with pytest.raises(Diverged):
        learner.observe(x * 3e38, y)  # finite, and too large for the first convolution
    changed = differences(before, learner.state_dict())
    assert [name for name in changed if not name.startswith("random.")] == []
    assert learner.observe(x, y).isfinite()  # and it goes on as if nothing had been


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_divergence_in_a_later_iteration_undoes_the_earlier_ones(momentum):
    learner = feed(toy_learner(iterations=3, momentum=momentum), toy_batches(3))
    before = snapshot(learner)
    learner.optimizer.param_groups[0]["lr"] = 1e30  # the first iteration is finite, and throws the weights far away
    with pytest.raises(Diverged):
        learner.observe(*toy_batches(1)[0])
    assert [name for name in differences(before, learner.state_dict()) if not name.startswith("random.")] == []


@over([case for case in EVERYONE if case[1] not in ("family", *OWN)] + [("er", "own")])
def test_learns(method, options):
    wider = {"width": 2 * small(method)["width"], "augment": "none", "memory": 100}
    learner = toy_learner(method, **wider, **options)
    steps = 10 if method in ("scr", "pcr") else 30
    losses = [learner.observe(x, y, task).item() for x, y, task in toy_batches(steps, size=32, tasks=1)]
    if not issubclass(METHODS[method], Frozen | TwoViews):
        assert sum(losses[-10:]) / 10 < 0.5 * sum(losses[:3]) / 3
    else:  # their loss does not come near zero
        x, y, _ = toy_batches(1, size=100, seed=3, tasks=1)[0]
        assert (learner.predict(x).argmax(1) == y).float().mean() > 0.9


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")  # that it is a prototype
@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@over_variants
def test_step_probe_and_prediction_never_wait_for_the_device(method, options):
    learner = toy_learner(method, device="cuda", **options)
    batches = [(x.cuda(), y.cuda(), task) for x, y, task in toy_batches(6)]
    feed(learner, batches)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for x, y, task in batches:
            learner.step(x, y)
            if learner.tick(task):
                learner.probe()
            learner.predict(x)
    finally:
        torch.cuda.set_sync_debug_mode("default")
