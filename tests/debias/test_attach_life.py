"""An attached layer comes and goes without a trace, and lives through copies and compilers."""

import copy
import pickle

import pytest
import torch
from torch import nn

import droptop
from droptop import BadRequest

from .attaching import X, Y, attached, outcome, same, seeded
from models import CLASSES, ResNet


def test_a_removed_layer_leaves_the_model_as_it_was():
    plain = seeded(ResNet)
    model, layer = attached()
    assert model.state_dict().keys() == plain.state_dict().keys()
    with pytest.raises(BadRequest, match="has a debiasing layer already"):
        attached(model=model)
    layer.remove()
    layer.remove()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert same(outcome(model, model(X)), outcome(plain, plain(X)))
    with pytest.raises(BadRequest, match="was removed"), layer.labels(Y):
        pass
    attached(model=model)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))], ids=["deepcopy", "pickle"]
)
def test_a_copied_model_is_plain_and_a_copied_pair_goes_on_alike(copied):
    """A copy of the model is a plain one; a copy of both goes on as the two would have."""
    model, layer = attached(gamma=30.0)
    with layer.labels(Y):
        model(X)
        alone = copied(model)
        assert torch.equal(alone(X), copied(alone)(X))
    attached(model=alone)
    twin, other = copied((model, layer))
    with layer.labels(Y), other.labels(Y):
        assert torch.equal(model(X), twin(X))
    assert torch.equal(layer.trace.mask, other.trace.mask)


# Of torch's own making, where a graph that broke goes on with a map.
compiles = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")


def tiny():
    """A model that compiles quickly."""
    first = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
    last = nn.Sequential(nn.Conv2d(4, 6, 3, 2, 1), nn.BatchNorm2d(6), nn.ReLU(inplace=True))
    return nn.Sequential(first, last, nn.Flatten(), nn.Linear(96, CLASSES))


@compiles
@pytest.mark.parametrize(
    ("order", "backend"),
    [("attach, compile", "aot_eager"), ("compile, run, attach", "eager"), ("attach, compile in place", "eager")],
)
def test_a_compiled_model_gives_the_same_bits(order, backend):
    plain, expected = attached(tiny, "0", "1", gamma=20.0)
    with expected.labels(Y):
        wanted = outcome(plain, plain(X))
    model = compiled = seeded(tiny)
    if order.startswith("compile"):
        compiled = torch.compile(model, backend=backend)
        fresh = copy.deepcopy(model.state_dict())
        compiled(X)  # exactly as later on, so that its graph will do again
        model.load_state_dict(fresh)
    layer = droptop.attach(compiled, "0", "1", CLASSES, gamma=20.0)
    if order == "attach, compile":
        compiled = torch.compile(model, backend=backend)
    if order == "attach, compile in place":
        model.compile(backend=backend)
    with layer.labels(Y):
        assert same(outcome(model, compiled(X)), wanted)
    torch.compiler.reset()


@compiles
def test_a_model_without_labels_compiles_whole_and_once():
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return graph.forward

    model, layer = attached(tiny, "0", "1")
    whole = torch.compile(model.eval(), backend=count, fullgraph=True)
    whole(X)
    assert len(graphs) == 1
    torch.compiler.reset()
    compiled, made = torch.compile(model.train(), backend=count), []
    for _ in range(3):
        with layer.labels(Y):
            compiled(X)
        made.append(len(graphs))
    assert made[0] == made[-1]  # not anew for every batch
    torch.compiler.reset()


def test_data_parallel_is_refused():
    model, layer = attached()
    replica = model._replicate_for_data_parallel()
    with pytest.raises(BadRequest, match="DataParallel"), layer.labels(Y):
        replica(X)
    with pytest.raises(BadRequest, match="DataParallel"):
        attached(model=nn.DataParallel(seeded(ResNet)))


def test_on_another_device_a_layer_draws_anew_from_its_seed():
    """A generator cannot move, so that a new one takes its place."""
    masks = []
    for moves in (False, True):
        model, layer = attached(gamma=30.0, drop="random", seed=5)
        if moves:
            with layer.labels(Y):
                model(X)
            layer.device = torch.device("meta")  # as if the model had been there until now
        with layer.labels(Y):
            model(X)
        masks.append(layer.trace.mask)
    assert torch.equal(*masks)
