"""The attention of a learner against Eq. 4 by slow loops, and without a trace in the learner."""

import copy

import pytest
import torch
import torch.nn.functional as F

from droptop.learner_attention import attention_of

from toys import differences, feed, snapshot, toy_batches, toy_learner


def slow_fusion(first, last):
    """Return Eq. 4, cell by cell: the mean channel of the first map times that of the last one at its size."""
    height, width = first.shape[-2:]
    big = F.interpolate(last, (height, width), mode="bilinear", align_corners=False)
    scores = torch.zeros(len(first), height, width)
    for image in range(len(first)):
        for i in range(height):
            for j in range(width):
                scores[image, i, j] = first[image, :, i, j].mean() * big[image, :, i, j].mean()
    return scores


def maps_by_hand(learner, x, training):
    """Return first and last map of images through a copy of the net, in training mode or not."""
    model = copy.deepcopy(learner.model).train(training)
    with torch.no_grad():
        first = model.stem(learner.normalise(x))
        return first, model.trunk(first).map


@pytest.mark.parametrize("predicting", [False, True])
@pytest.mark.parametrize("debias", ["none", "droptop"])
def test_attention_is_eq_4_of_the_maps(debias, predicting):
    learner = feed(toy_learner(debias=debias), toy_batches(4))
    x, _, _ = toy_batches(1, seed=3)[0]
    first, last = maps_by_hand(learner, x, training=not predicting)
    before = snapshot(learner)
    attention = attention_of(learner, x, predicting)
    torch.testing.assert_close(attention, slow_fusion(first, last))
    assert differences(before, snapshot(learner)) == []
    assert all(module.training for module in learner.model.modules())


def test_a_layer_that_looks_at_the_last_map_alone_gives_its_own_scores():
    learner = feed(toy_learner(debias="no-fusion"), toy_batches(4))
    x, _, _ = toy_batches(1, seed=3)[0]
    first, last = maps_by_hand(learner, x, training=True)
    expected = F.interpolate(last.mean(1, keepdim=True), first.shape[-2:], mode="bilinear", align_corners=False)[:, 0]
    torch.testing.assert_close(attention_of(learner, x), expected)


def test_predicting_attention_does_not_depend_on_the_other_images():
    learner = feed(toy_learner(), toy_batches(4))
    x, _, _ = toy_batches(1, seed=3)[0]
    alone = torch.cat([attention_of(learner, image[None], predicting=True) for image in x])
    torch.testing.assert_close(alone, attention_of(learner, x, predicting=True))
    assert not torch.allclose(attention_of(learner, x[:3]), attention_of(learner, x)[:3])  # as in training it does
