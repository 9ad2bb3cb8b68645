"""Averaged weights: what they are after every step, who predicts by them, and that training does not know of them."""

import math

import pytest
import torch
from safetensors.torch import load_file

from droptop import (
    BadCheckpoint,
    BadRequest,
    Diverged,
    LearnerConfig,
    Samples,
    accuracy,
    export,
    load_learner,
    make_stream,
)
from droptop.learner_attention import attention_of
from droptop.nets import compute_in
from droptop.runs.build import build_learner
from droptop.runs.config import configure
from droptop.runs.folder import read_result
from droptop.runs.requests import begin
from droptop.training.evaluation import evaluate
from droptop.training.seed_run import SeedRun

from plans import plan
from toys import FLOAT_SPEC, SPEC, differences, feed, snapshot, toy_batches, toy_learner

IMAGES = torch.randint(0, 256, (5, *SPEC.shape), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def some(values):
    """The first two numbers of each of some weights."""
    return {name.removeprefix("model."): value.detach().flatten()[:2].tolist() for name, value in values.items()}


@pytest.mark.parametrize("decay", [0.5, 0.99, 0.0])
@pytest.mark.parametrize("options", [{}, {"iterations": 2}], ids=["", "iterations"])
def test_averages_are_those_of_a_loop_over_steps(decay, options):
    """The window of a ninth at first; from the ninth step on, a decay of 0.5 is more."""
    learner = toy_learner(debias="none", average=True, average_decay=decay, **options)
    expected = some(learner.weights)
    for step, batch in enumerate(toy_batches(12)):
        learner.observe(*batch)
        share = max(9 / (10 + step), 1 - decay)
        for name, values in some(learner.weights).items():
            expected[name] = [mean + (value - mean) * share for mean, value in zip(expected[name], values)]
        for name, values in some(learner.average.averages).items():
            assert values == pytest.approx(expected[name], rel=1e-4, abs=1e-6), (step, name)
    assert learner.average.steps == 12


def test_the_average_begins_as_one_of_the_last_ninth():
    """Where weights grow by one per step, it lags behind by a tenth of the steps, and not by 1 / (1 - decay)."""
    learner = toy_learner(debias="none", average=True, average_decay=0.999)
    (weight, average) = next(zip(learner.weights.values(), learner.average.averages.values()))
    with torch.no_grad():
        average.zero_()
        for step in range(300):
            weight.fill_(step)
            learner.average.update(torch.tensor(True))
    assert average.flatten()[0].item() == pytest.approx(299 - 30, abs=3)


@pytest.mark.parametrize("iterations", [1, 2])
def test_a_loss_that_is_not_finite_moves_no_average(iterations):
    learner = toy_learner(spec=FLOAT_SPEC, average=True, iterations=iterations)
    feed(learner, toy_batches(3, spec=FLOAT_SPEC))
    x, y, _ = toy_batches(1, spec=FLOAT_SPEC)[0]
    before = snapshot(learner)
    with pytest.raises(Diverged):
        learner.observe(x * 3e38, y)
    assert [name for name in differences(before, learner.state_dict()) if name.startswith("average.")] == []
    learner.observe(x, y)
    assert learner.average.steps == 4


@pytest.mark.parametrize("method", ["er", "l2p", "gss"])
def test_the_average_predicts_and_training_does_not_know(method):
    batches = toy_batches(8)
    plain, averaged = (feed(toy_learner(method, average=average), batches) for average in (False, True))
    assert torch.equal(averaged.predict(IMAGES, plain=True), plain.predict(IMAGES))
    assert torch.equal(plain.predict(IMAGES, plain=True), plain.predict(IMAGES))
    state = averaged.state_dict()
    trained = {name: value for name, value in state.items() if not name.startswith("average.")}
    assert differences(plain.state_dict(), trained) == []
    with torch.no_grad():  # the same net with the averages in place of its weights
        for name, weight in plain.weights.items():
            weight.copy_(state["average." + name.removeprefix("model.")])
    assert torch.equal(averaged.predict(IMAGES), plain.predict(IMAGES))
    assert not torch.equal(averaged.predict(IMAGES), averaged.predict(IMAGES, plain=True))
    assert torch.equal(attention_of(averaged, IMAGES, predicting=True), attention_of(plain, IMAGES, predicting=True))
    x, y, _ = toy_batches(1, size=40, seed=1, tasks=1)[0]
    assert evaluate(averaged, Samples(x, y)) == evaluate(plain, Samples(x, y))


def test_a_models_statistics_are_those_of_its_average():
    learner = feed(toy_learner(average=True), toy_batches(3))
    pairs = list(zip(learner.model.buffers(), learner.average.model.buffers(), strict=True))
    assert len(pairs) > 10
    assert all(one.data_ptr() == other.data_ptr() for one, other in pairs)
    assert not any(
        one.data_ptr() == other.data_ptr()
        for one, other in zip(learner.model.parameters(), learner.average.model.parameters(), strict=True)
    )


def test_frozen_weights_are_shared_and_prompts_are_averaged():
    learner = feed(toy_learner("l2p", average=True), toy_batches(4))
    shared = {
        name
        for (name, one), (_, other) in zip(
            learner.model.named_parameters(), learner.average.model.named_parameters(), strict=True
        )
        if one is other
    }
    trained = {name.removeprefix("model.") for name in learner.weights}
    assert shared == {name for name, _ in learner.model.named_parameters()} - trained
    assert learner.average.averages.keys() == trained
    assert {"prompts.prompts", "prompts.keys"} <= trained
    averages = {name for name in learner.state_dict() if name.startswith("average.")}
    assert averages == {f"average.{name}" for name in (*trained, "steps")}


def test_of_two_models_the_first_is_averaged():
    """That which predicts, of `--reference`."""
    learner = toy_learner(average=True, reference=True)
    start = {name: value.clone() for name, value in learner.average.averages.items()}
    learner.observe(*toy_batches(1)[0])
    for name, average in learner.average.averages.items():
        own, others = (learner.models[model].get_parameter(name) for model in ("model", "twin"))
        assert torch.allclose(average, start[name] + 0.9 * (own - start[name]), atol=1e-6)
        assert own is not others
    assert learner.average.averages.keys() == dict(learner.model.named_parameters()).keys()


def test_a_state_goes_into_a_learner_that_averages_alone():
    averaged, plain = feed(toy_learner(average=True), toy_batches(3)), toy_learner()
    with pytest.raises(BadCheckpoint, match=r"this state is of another learner: average\."):
        plain.load_state_dict(averaged.state_dict())
    with pytest.raises(BadCheckpoint, match=r"this state is of another learner: average\."):
        averaged.load_state_dict(plain.state_dict())
    again = toy_learner(average=True, seed=1)
    again.load_state_dict(averaged.state_dict())
    assert torch.equal(again.predict(IMAGES), averaged.predict(IMAGES))
    assert torch.equal(again.predict(IMAGES, plain=True), averaged.predict(IMAGES, plain=True))


def test_averages_of_a_given_model_predict():
    batches = toy_batches(6)
    plain, averaged = (feed(toy_learner(own=True, average=average), batches) for average in (False, True))
    assert torch.equal(averaged.predict(IMAGES, plain=True), plain.predict(IMAGES))
    with torch.no_grad():
        for name, weight in plain.model.named_parameters():
            weight.copy_(averaged.average.averages[name])
    assert torch.equal(averaged.predict(IMAGES), plain.predict(IMAGES))


@pytest.mark.parametrize(("method", "precision"), [("er", "fp32"), ("er", "bf16"), ("l2p", "fp32")])
def test_what_predicts_is_exported(method, precision, tmp_path):
    learner = feed(toy_learner(method, average=True), toy_batches(4))
    for model in learner.every_model:
        compute_in(model, SPEC.shape, precision)
    assert export(learner, tmp_path / "net.safetensors") < 1e-5
    weights = load_file(tmp_path / "net.safetensors")
    for name, average in learner.average.averages.items():
        assert torch.equal(weights[name.removeprefix("vit.")], average), name
    for name, value in learner.model.named_buffers():  # BatchNorm's statistics
        assert torch.equal(weights[name.removeprefix("vit.")], value), name


def test_a_run_is_measured_by_its_averages(tmp_path):
    options = {"limit": 48, "tasks": 2, "width": 4, "memory": 20, "seeds": 1, "maps": 0, "precision": "bf16"}
    config = configure("fashion", "er", "average", **options)
    assert config.learner.average
    begin(plan(config), tmp_path / "run")
    SeedRun(config, tmp_path / "run", 0, lambda progress: None)()
    learner = load_learner(tmp_path / "run")
    (name, test), *_ = make_stream("fashion", limit=48, tasks=2).tests.items()
    said = read_result(tmp_path / "run", 0)["tests"][name]["A_last"]
    assert accuracy(evaluate(learner, test)) == said


def test_averages_compute_in_the_precision_of_the_weights():
    """In bfloat16, where what never changes is cast once: averages do change."""
    options = {"precision": "bf16", "width": 4, "memory": 20, "memory_batch": 6}
    averaged, plain = (
        build_learner(configure("fashion", "er", debias, **options), SPEC, 0) for debias in ("average", "none")
    )
    for learner in (averaged, plain):
        learner.observe(*toy_batches(1)[0])
        learner.predict(IMAGES)
    feed(averaged, toy_batches(4))
    with torch.no_grad():
        for name, value in averaged.average.model.state_dict().items():
            plain.model.state_dict()[name].copy_(value)
        plain.seen.copy_(averaged.seen)
    assert torch.equal(averaged.predict(IMAGES), plain.predict(IMAGES))


@pytest.mark.parametrize("decay", [1.0, -0.1, math.nan])
def test_a_decay_that_forgets_nothing_is_refused(decay):
    with pytest.raises(BadRequest) as error:
        LearnerConfig(average_decay=decay)
    assert str(error.value) == f"--average-decay takes a number from 0 and below 1, not {decay}"
