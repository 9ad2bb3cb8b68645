"""NCM, SLDA and RanPAC: nothing is trained, no order matters, and the classifier can be exported."""

import pytest
import torch

from droptop import BadRequest
from droptop.nets import compute_in
from droptop.runs.export import export

from toys import feed, toy_batches, toy_learner

over_frozen = pytest.mark.parametrize("method", ["ncm", "slda", "ranpac"])


@over_frozen
def test_no_weight_moves_and_none_is_saved(method):
    learner = toy_learner(method, "robust")
    before = [weight.clone() for weight in learner.model.parameters()]
    feed(learner, toy_batches(4))
    assert all(torch.equal(*pair) for pair in zip(before, learner.model.parameters()))
    assert learner.weights == {}
    assert not [name for name in learner.state_dict() if "blocks" in name or "head" in name]


@pytest.mark.parametrize("method", ["ncm", "ranpac"])
def test_the_order_of_the_stream_does_not_matter(method):
    """With a ridge that is given: which samples are held out depends on the order."""
    options = {"debias": "none", "augment": "none"} | ({"ridge": 1.0} if method == "ranpac" else {})
    batches, x = toy_batches(6, tasks=1), toy_batches(1, seed=3)[0][0]
    one, other = (feed(toy_learner(method, **options), each) for each in (batches, batches[::-1]))
    torch.testing.assert_close(one.predict(x), other.predict(x), atol=1e-4, rtol=1e-4)


@over_frozen
def test_two_models_are_refused(method):
    with pytest.raises(BadRequest, match="--reference takes a method that trains its net"):
        toy_learner(method, reference=True)


@pytest.mark.parametrize(("method", "ending"), [("ranpac", "pt2"), ("ncm", "safetensors"), ("scr", "safetensors")])
def test_classifiers_that_are_computed_are_exported(method, ending, tmp_path):
    learner, path = feed(toy_learner(method), toy_batches(4)), tmp_path / f"net.{ending}"
    assert export(learner, path) < 1e-5
    if ending == "pt2":
        x = toy_batches(1, seed=3)[0][0]
        logits = torch.export.load(path).module()(x / 255)
        seen = learner.seen.nonzero()[:, 0]
        torch.testing.assert_close(logits, learner.predict(x)[:, seen], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("method", "sums"), [("ncm", set()), ("slda", {"scatter"}), ("ranpac", {"gram", "held_gram", "held_sums"})]
)
def test_states_hold_what_was_summed_and_no_constants(method, sums):
    own = {name for name in toy_learner(method).state_dict() if name.startswith("own.")}
    assert own == {f"own.{name}" for name in {"counts", "sums"} | sums}


def test_the_classifier_is_computed_once_until_the_next_step():
    learner, x = feed(toy_learner("slda"), toy_batches(3)), toy_batches(1, seed=3)[0][0]
    first, counted, refresh = learner.predict(x), [], learner.refresh
    learner.refresh = lambda: counted.append(1) or refresh()
    assert torch.equal(learner.predict(x), first)
    assert counted == []
    learner.load_state_dict({name: value.clone() for name, value in learner.state_dict().items()})
    learner.predict(x)
    feed(learner, toy_batches(1))
    learner.predict(x), learner.predict(x)
    assert counted == [1, 1]


@pytest.mark.parametrize("method", ["scr", "pcr", "mkd", "slda", "ranpac"])
def test_heads_of_another_kind_compute_in_bfloat16(method):
    batches, x = toy_batches(2), toy_batches(1, seed=3)[0][0]
    exact, learner = feed(toy_learner(method, "none"), batches).predict(x), toy_learner(method, "none")
    for model in learner.every_model:
        compute_in(model, learner.spec.shape, "bf16")
    rounded = feed(learner, batches).predict(x)
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, exact)
    assert (rounded[:, learner.seen].isfinite()).all()


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("slda", {"shrinkage": 0.0}, "--shrinkage takes a share above 0 and up to 1, not 0.0"),
        ("ranpac", {"ridge": -1.0}, "--ridge takes a number above 0, not -1.0"),
        ("ranpac", {"held_out": 1}, "--held-out takes a number from 2, not 1"),
        ("mkd", {"teacher_decay": 1.0}, "--teacher-decay takes a number from 0 and below 1, not 1.0"),
        ("scr", {"temperature": 0.0}, "--temperature takes a number above 0, not 0.0"),
        ("pcr", {"jitter": 2.0}, "--jitter takes a share from 0 to 1, not 2.0"),
    ],
)
def test_bad_options_are_refused(method, options, message):
    with pytest.raises(BadRequest, match=message):
        toy_learner(method, **options)
