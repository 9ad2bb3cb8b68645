"""What an attached layer refuses, and in which words."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import droptop
from droptop import BadBatch, BadRequest

from .attaching import X, Y, attached


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"first": "maxpol"}, r"first takes the name of a submodule, not 'maxpol': ResNet has maxpool"),
        ({"last": "layer5"}, r"last takes .* has layer4, layer1"),
        ({"first": ""}, "first takes the name of a submodule"),
        ({"first": "layer4"}, "last takes a later submodule than first"),
        ({"gama": 3.0}, "attach has no option gama; did you mean gamma"),
        ({"gamma": 101.0}, "gamma takes a percentage"),
        ({"gamma": "5"}, "gamma takes a number, not '5'"),
        ({"period": 0}, "period takes a number of steps"),
        ({"reference": True}, "reference takes a learner"),
        ({"p_counter": "task"}, "p-counter takes global"),
        ({"classes": 0}, "classes takes a number from 1"),
        ({"gamma": 2.5, "kappa_0": 4.0}, "kappa-0 takes a percentage up to gamma, 2.5, not 4.0"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_options_that_cannot_be_attached_are_refused(options, says):
    with pytest.raises(BadRequest, match=says):
        attached(**options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"first": "unused"}, "first: model.x. does not run through 'unused'"),
        ({"first": "unused", "drop": "random"}, "first: model.x. does not run through 'unused'"),
        ({"last": "unused"}, "last: model.x. does not run through 'unused'"),
        ({"first": "layer1.0.relu"}, "first: model.x. runs through 'layer1.0.relu' more than once"),
        ({"first": "fc", "drop": "random"}, r"'fc' gives \(8, 4\), which is no map"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_submodules_that_give_no_map_are_refused(options, says):
    model, layer = attached(**options)
    with pytest.raises(BadRequest, match=says), layer.labels(Y):
        model(X)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (Y[:7], "maps of 8 samples, but there are 7 labels"),
        (Y + 1, "lie in 0 to 3, not 1 to 4"),
        (F.one_hot(Y), "one per sample"),
        (Y.float(), "must be integers"),
    ],
)
def test_labels_that_do_not_fit_the_batch_are_refused(labels, says):
    model, layer = attached()
    with pytest.raises(BadBatch, match=says), layer.labels(labels):
        model(X)
    with pytest.raises(BadBatch, match="8 images and 7 labels"):
        layer.probe(X, Y[:7])


@pytest.mark.parametrize(
    "labels", [Y + 1, Y - 1, F.one_hot(Y), Y.float(), Y == 0, Y.tolist()], ids=lambda value: str(value)[:40]
)
def test_labels_of_the_memory_are_refused_in_the_same_words(labels):
    model, layer = attached(period=2)
    with pytest.raises(BadBatch) as of_a_batch, layer.labels(labels):
        model(X)
    before = copy.deepcopy(layer.state_dict())
    for call in (layer.adjust, layer.probe):
        with pytest.raises(BadBatch) as of_the_memory:
            call(X, labels)
        assert str(of_the_memory.value) == str(of_a_batch.value)
    for name, value in layer.state_dict().items():  # it was no step
        torch.testing.assert_close(before[name], value, rtol=0, atol=0, equal_nan=True)


def test_a_method_called_in_place_of_the_model_is_refused():
    model, layer = attached()
    with pytest.raises(BadRequest, match="call model"), layer.labels(Y):
        model.forward(X)


def test_first_and_last_the_wrong_way_round_are_refused():
    inner = nn.Sequential(nn.Conv2d(4, 4, 3), nn.ReLU())
    model = nn.Sequential(nn.Conv2d(3, 4, 3), inner, nn.Flatten(), nn.Linear(100, 4))
    x, y = torch.rand(2, 3, 9, 9), torch.tensor([0, 1])
    model(x)
    for first, last in (("1", "0"), ("1", "1.0")):
        layer = droptop.attach(model, first, last, classes=4)
        with pytest.raises(BadRequest, match=f"model.x. runs through '{last}' before '{first}'"), layer.labels(y):
            model(x)
        layer.remove()
    layer = droptop.attach(model, "1.0", "1", classes=4)  # inside of what comes last is before its end
    with layer.labels(y):
        model(x)
    with pytest.raises(BadBatch, match="labels must be a tensor, not list"), layer.labels([0, 1]):
        model(x)
    with pytest.raises(BadRequest, match=r"attach takes an nn\.Module, not function"):
        droptop.attach(lambda x: x, "0", "1", classes=4)
