"""SCR, PCR and MKD: what their two views are, and what they refuse."""

import itertools

import pytest
import torch

from droptop import BadRequest, make_learner
from droptop.debias import members_of
from droptop.learner import unit_range
from droptop.methods.views import views_of

from models import ResNet
from toys import SPEC, feed, toy_batches, toy_learner

METHODS = pytest.mark.parametrize("method", ["scr", "pcr", "mkd"])


def joined(learner):
    stream = dict(zip("xy", toy_batches(1, seed=5)[0]))
    replayed = learner.retrieve(stream)
    return stream, replayed, learner.joined(stream, replayed)


def test_first_views_are_images_as_they_are_and_second_ones_are_not():
    learner = feed(toy_learner("pcr", augment="crop-resize", memory=100), toy_batches(3))
    stream, replayed, batch = joined(learner)
    assert (batch.stream, len(batch.y)) == (16, 28)
    (firsts, seconds), labels = views_of(batch.x, 16), torch.cat([stream["y"], replayed["y"]])
    assert torch.equal(firsts, unit_range(torch.cat([stream["x"], replayed["x"]])))
    assert not any(torch.equal(one, other) for one, other in zip(firsts, seconds))
    assert all(torch.equal(each, labels) for each in views_of(batch.y, 16))
    assert learner.counted(batch).all()


def test_without_jitter_second_views_keep_their_colours():
    learners = [toy_learner("pcr", augment="none", jitter=jitter) for jitter in (0.0, 1.0)]
    plain, changed = (views_of(joined(learner)[2].x, 16) for learner in learners)
    assert torch.equal(*plain)
    assert not torch.equal(changed[0], changed[1])


def test_stand_ins_are_not_counted():
    learner = toy_learner("scr")
    _, _, batch = joined(learner)  # the memory is empty
    assert learner.counted(batch).tolist() == [1] * 16 + [0] * 12


@METHODS
def test_what_was_dropped_is_told_of_the_streams_first_views(method):
    learner = feed(toy_learner(method, drop="constant", kappa_0=5.0), toy_batches(2))
    assert len(learner.trace.mask) == 8


@pytest.mark.parametrize("method", ["scr", "pcr"])
def test_a_model_without_known_features_is_refused(method):
    with pytest.raises(BadRequest, match="takes a net that droptop builds"):
        make_learner(method, SPEC, "none", model=ResNet(4), first="maxpool", last="layer4")


@pytest.mark.parametrize("debias", ["rsc", "decouple"])
@pytest.mark.parametrize("method", ["scr", "ncm"])
def test_debiasers_that_take_logits_are_refused_where_none_are_trained(method, debias):
    with pytest.raises(BadRequest, match=f"--debias {debias} takes a method that trains logits"):
        toy_learner(method, debias)


@pytest.mark.parametrize("method", ["scr", "ranpac"])
def test_a_recipe_goes_without_them(method):
    assert toy_learner(method, "robust").debias.members.keys() == members_of("robust").keys() - {"rsc", "decouple"}
    with pytest.raises(BadRequest, match="--debias decouple takes a method"):
        toy_learner(method, "colour+decouple")


def test_the_teacher_answers_for_itself():
    """By either, or by the mean of the weights."""
    batches, x = toy_batches(4), toy_batches(1, seed=3)[0][0]
    answers = [feed(toy_learner("mkd", predict_by=by), batches).predict(x) for by in ("both", "student", "teacher")]
    assert not any(torch.equal(one, other) for one, other in itertools.pairwise(answers))
    averaged = feed(toy_learner("mkd", average=True), batches)
    assert averaged.predictor is averaged.average.model
    assert torch.equal(averaged.predict(x, plain=True), answers[1])
