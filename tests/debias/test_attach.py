"""The layer in other people's models, against the same equations applied by hand."""

import copy
import pickle
import warnings
from contextlib import nullcontext
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import droptop
from droptop import BadBatch, BadRequest, DropTop
from droptop.debias.attach import configured
from droptop.memory import Rows
from droptop.nets import untracked
from droptop.rng import generator

from models import CLASSES, ConvNeXt, ResNet, VisionTransformer
from toys import QUICK, differences, feed, toy_batches, toy_learner

X = torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(0))
Y = torch.arange(8) % CLASSES


def seeded(make, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make(**options)


def outcome(model, logits):
    """Everything that a training step sees of a model: logits, gradients, statistics."""
    model.zero_grad()
    F.cross_entropy(logits, Y).backward()
    gradients = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    return {"logits": logits.detach(), **gradients, **dict(model.named_buffers())}


def same(a, b):
    return differences(a, b) == []


def by_hand(model, stem, trunk, options):
    """Logits of a model in two parts, with the layer between them; `trunk` gives the last map and the logits."""
    layer = DropTop(configured(options), CLASSES, generator(0, "debias"))
    first, back = stem(X)
    with torch.no_grad(), untracked(model):
        last, _ = trunk(back(first))
    _, logits = trunk(back(layer(first, lambda: last, Y)))
    return layer, logits


def resnet_parts(model):
    def trunk(first):
        last = model.layer4(model.layer1(first))
        return last, model.fc(model.avgpool(last).flatten(1))

    return lambda x: (model.maxpool(model.relu(model.bn1(model.conv1(x)))), lambda map: map), trunk


def convnext_parts(model):
    def trunk(first):
        last = model.stages[1]["blocks"](model.down(model.stages[0]["blocks"](first)))
        return last, model.head(last.mean((2, 3)))

    return lambda x: (model.stem(x), lambda map: map), trunk


def vit_parts(model):
    def stem(x):
        tokens = model.patch_embed(x)
        return tokens.transpose(1, 2).reshape(8, 8, 4, 4), lambda map: map.reshape(8, 8, 16).transpose(1, 2)

    def trunk(tokens):
        tokens = torch.cat([model.cls_token.expand(8, -1, -1), tokens + model.pos_embed], 1)
        last = model.blocks(tokens)
        return last[:, 3:].transpose(1, 2).reshape(8, 8, 4, 4), model.head(model.norm(last)[:, 0])

    return stem, trunk


MODELS = {
    "resnet": (ResNet, "maxpool", "layer4", resnet_parts),
    "convnext": (ConvNeXt, "stem", "stages.1.blocks", convnext_parts),
    "vit": (VisionTransformer, "patch_embed", "blocks.1", vit_parts),
}


def attached(make=ResNet, first="maxpool", last="layer4", model=None, classes=CLASSES, **options):
    model = model or seeded(make)
    return model, droptop.attach(model, first, last, classes, **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"gamma": 30.0, "mask": "soft"}, {"gamma": 20.0, "attention": "last"}, {"drop": "random", "gamma": 40.0}],
    ids=str,
)
@pytest.mark.parametrize("kind", MODELS)
def test_is_the_layer_by_hand(kind, options):
    make, first, last, parts = MODELS[kind]
    expected = seeded(make)
    layer, logits = by_hand(expected, *parts(expected), options)
    model, ours = attached(make, first, last, **options)
    with ours.labels(Y):
        debiased = model(X)
    assert torch.equal(ours.trace.mask, layer.last.mask)
    assert 0 < (ours.trace.mask < 1).float().mean() < 0.5
    ours_saw, expected_saw = outcome(model, debiased), outcome(expected, logits)
    assert {name: ours_saw[name] for name in expected_saw}.keys() == ours_saw.keys()
    for name, value in expected_saw.items():
        torch.testing.assert_close(ours_saw[name], value, rtol=1e-5, atol=1e-6, msg=name)


@pytest.mark.parametrize("debias", ["droptop", "no-fusion", "random"])
def test_is_what_the_learner_does(debias):
    """Bit for bit: mask, loss, gradients and statistics."""
    learner = toy_learner(debias=debias)
    model = copy.deepcopy(learner.model)
    settings = {"no-fusion": {"attention": "last"}, "random": {"drop": "random"}}.get(debias, {})
    layer = droptop.attach(model, "maxpool", "layer4", CLASSES, **settings)
    rows: Rows = {"y": Y}
    expected = outcome(learner.model, learner.logits(learner.model, X, rows, learner.debias))
    with layer.labels(Y):
        logits = model(X)
    assert torch.equal(layer.trace.mask, learner.debias.last.mask)
    assert same(outcome(model, logits), expected)


@pytest.mark.parametrize("kind", MODELS)
def test_nothing_is_dropped_at_gamma_zero_nor_without_labels_nor_in_eval_mode(kind):
    make, first, last, _ = MODELS[kind]
    plain = seeded(make)
    plain = outcome(plain, plain(X))
    model, layer = attached(make, first, last, gamma=0.0)
    with layer.labels(Y):
        logits = model(X)
    assert same(outcome(model, logits), plain)
    model, layer = attached(make, first, last, gamma=50.0)
    before = copy.deepcopy(layer.state_dict())
    assert same(outcome(model, model(X)), plain)
    model.eval()
    with layer.labels(Y):
        assert torch.equal(model(X), copy.deepcopy(model)(X))
    assert same(before, layer.state_dict())


def test_labels_nest_and_survive_errors():
    model, layer = attached(gamma=30.0)
    kappa = layer.kappa
    kappa.copy_(torch.tensor([0.0, 30.0, 0.0, 30.0]))
    layer.debias.intensity.candidates.copy_(kappa.expand(2, -1))
    low, high = torch.zeros_like(Y), torch.ones_like(Y)

    def top(labels):
        with layer.labels(labels) if labels is not None else nullcontext():
            model(X)
        hit = layer.trace.attention.flatten(1).argmax(1)
        return (layer.trace.mask.flatten(1).gather(1, hit[:, None]) == 0).float().mean().item()

    with layer.labels(low):
        assert top(high) == 1
        assert top(None) < 1  # the outer ones again
        with pytest.raises(ZeroDivisionError), layer.labels(high):
            raise ZeroDivisionError
        assert top(None) < 1
        with pytest.raises(RuntimeError):
            model(X[:, :2])  # the model's own complaint
        assert top(None) < 1
    assert torch.equal(model(X), model(X))


def test_leaves_torchs_generator_alone_and_dropout_as_it_was():
    """The attention pass draws nothing: with gamma 0 dropout then drops what it drops in a plain model."""
    results = []
    for debiased in (False, True):
        model, layer = attached(model=seeded(ResNet, dropout=0.5), gamma=0.0)
        torch.manual_seed(3)
        with layer.labels(Y) if debiased else nullcontext():
            results.append(outcome(model, model(X)) | {"generator": torch.get_rng_state()})
    assert same(*results)


def test_autocast_keeps_every_gradient():
    model, layer = attached()
    with torch.autocast("cpu", torch.bfloat16), layer.labels(Y):
        loss = F.cross_entropy(model(X), Y)
    loss.backward()
    assert all(weight.grad is not None for name, weight in model.named_parameters() if "unused" not in name)


# -- Adapting ---------------------------------------------------------------------------------------------------------


def test_the_probe_is_the_learners():
    learner = feed(toy_learner(memory=20, period=1000), toy_batches(4))
    model, rows = copy.deepcopy(learner.model), learner.memory.read(torch.arange(20))
    layer = droptop.attach(model, "maxpool", "layer4", CLASSES, **QUICK | {"period": 2})
    images = learner.normalise(rows["x"])
    learner.probe()
    assert [layer.adjust(images, rows["y"]) for _ in range(2)] == [False, True]
    for name, value in learner.debias.intensity.state_dict().items():
        torch.testing.assert_close(layer.debias.intensity.state_dict()[name], value, equal_nan=True)


def test_adjusting_leaves_every_module_in_its_mode():
    model, layer = attached(period=1)
    model.bn1.eval()
    modes = [module.training for module in model.modules()]
    layer.adjust(X, Y)
    with layer.labels(Y):
        model(X)
    assert [module.training for module in model.modules()] == modes
    assert len(set(modes)) == 2


def test_kappa_follows_the_better_direction():
    """A class whose loss falls only in the periods of less dropping ends up with less of it."""
    _, layer = attached(period=1, history=3, kappa_0=4.0, classify=lambda x: answers[-1])
    answers = []
    for step in range(13):
        level = len(answers) * 0.5 + 0.01 * (step % 3)
        answers.append(F.one_hot(Y, CLASSES) * (level - 0.4 if step % 2 else level))
        layer.adjust(X, Y)
    assert (layer.kappa < 4.0).all()


def test_a_small_probe_and_an_empty_memory():
    model, layer = attached(period=1, probe=3, per="common", classify=lambda x: seen.append(len(x)) or model(x))
    seen = []
    layer.adjust(X, Y)
    layer.adjust(X[:0], Y[:0])
    assert seen == [3]
    assert layer.debias.intensity.loss.isnan().all()


def test_its_state_restores_exactly():
    def steps(model, layer, count):
        for _ in range(count):
            with layer.labels(Y):
                model(X)
            layer.adjust(X, Y)
        return layer

    options = {"period": 1, "history": 2, "significance": 0.4, "gamma": 20.0}
    model, layer = attached(**options)
    kept = copy.deepcopy((steps(model, layer, 3).state_dict(), model.state_dict()))
    steps(model, layer, 4)
    again, other = attached(seed=5, **options)
    other.load_state_dict(kept[0])
    again.load_state_dict(kept[1])
    steps(again, other, 4)
    for name, value in layer.state_dict().items():
        torch.testing.assert_close(other.state_dict()[name], value, rtol=0, atol=0, equal_nan=True)
    with pytest.raises(BadRequest, match="state is of another layer"):
        attached(classes=7)[1].load_state_dict(kept[0])


# -- Coming and going -------------------------------------------------------------------------------------------------


def test_comes_and_goes_without_a_trace():
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
def test_copies(copied):
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
def test_compiled_is_eager(order, backend):
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
def test_compiled_once_and_whole_without_labels():
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


# -- Maps -------------------------------------------------------------------------------------------------------------


def test_maps_with_channels_last():
    """The same mask on (B, h, w, c), by its shape alone or as told."""
    given = []
    for last in ("stages.1.blocks.0.mlp", "stages.1.blocks.0.dwconv"):
        model, layer = attached(ConvNeXt, "stages.0.blocks.0.mlp", last, gamma=30.0, drop="top")
        model.stages[0]["blocks"][0].mlp.register_forward_hook(lambda module, x, output: given.append(output))
        with layer.labels(Y):
            model(X)
        assert layer.trace.mask.shape == (8, 8, 8)
        assert torch.equal((given[-1] == 0).all(-1), layer.trace.mask == 0)
    model, layer = attached(ConvNeXt, "stem", "down", channels_last=True)
    with layer.labels(Y):
        model(X)
    assert layer.trace.mask.shape == (8, 6, 8)


def test_tokens_that_are_no_square():
    model = seeded(VisionTransformer, size=(8, 16))
    _, layer = attached(model=model, first="patch_embed", last="blocks.0")
    with pytest.raises(BadRequest, match=r"gives 8 tokens, not a square.*grid=\(rows, columns\)"), layer.labels(Y):
        model(X[:, :, :8])
    layer.remove()
    _, layer = attached(model=model, first="patch_embed", last="blocks.0", grid=(2, 4))
    with layer.labels(Y):
        model(X[:, :, :8])
    assert layer.trace.mask.shape == (8, 2, 4)


def test_tokens_in_front_are_never_masked():
    model, layer = attached(VisionTransformer, "blocks.0", "blocks.1", grid=(4, 4), drop="top", gamma=50.0)
    given = []
    model.blocks[0].register_forward_hook(lambda module, x, output: given.append(output))
    with layer.labels(Y):
        model(X)
    dropped = (given[-1] == 0).all(-1)
    assert not dropped[:, :3].any()
    assert torch.equal(dropped[:, 3:], layer.trace.mask.flatten(1) == 0)


def test_a_last_map_of_one_cell():
    model, layer = attached(last="avgpool")
    with pytest.warns(UserWarning, match="1 x 1, so that fusion does nothing: let last"), layer.labels(Y):
        model(X)
    with warnings.catch_warnings(), layer.labels(Y):
        model(X)  # once is enough
    _, layer = attached(last="avgpool", attention="last")
    with pytest.raises(BadRequest, match="larger than 1 x 1"), layer.labels(Y):
        layer.model(X)


# -- What is refused --------------------------------------------------------------------------------------------------


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
def test_what_cannot_be_attached(options, says):
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
def test_what_cannot_be_run(options, says):
    model, layer = attached(**options)
    with pytest.raises(BadRequest, match=says), layer.labels(Y):
        model(X)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (Y[:7], "maps of 8 samples, but there are 7 labels"),
        (Y + 1, "lie in 0 to 3, not 1 to 4"),
        (F.one_hot(Y), "one a sample"),
        (Y.float(), "must be integers"),
    ],
)
def test_labels_that_do_not_fit(labels, says):
    model, layer = attached()
    with pytest.raises(BadBatch, match=says), layer.labels(labels):
        model(X)
    with pytest.raises(BadBatch, match="8 images and 7 labels"):
        layer.probe(X, Y[:7])


@pytest.mark.parametrize(
    "labels", [Y + 1, Y - 1, F.one_hot(Y), Y.float(), Y == 0, Y.tolist()], ids=lambda value: str(value)[:40]
)
def test_labels_of_the_memory_are_refused_as_others_are(labels):
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


def test_methods_of_a_model_are_not_the_model():
    model, layer = attached()
    with pytest.raises(BadRequest, match="call model"), layer.labels(Y):
        model.forward(X)


# -- The real ones, where they are installed --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("library", "name", "first", "last", "side", "size", "options"),
    [
        ("torchvision.models", "resnet18", "maxpool", "layer4", 16, 64, {}),
        ("torchvision.models", "convnext_tiny", "features.0", "features.7", 16, 64, {}),
        ("torchvision.models", "swin_t", "features.0", "features.7", 16, 64, {}),
        ("torchvision.models", "vit_b_32", "conv_proj", "encoder.layers.encoder_layer_11", 3, 96, {"image_size": 96}),
        ("timm", "resnet18", "maxpool", "layer4", 16, 64, {}),
        ("timm", "convnext_atto", "stem", "stages.3", 16, 64, {}),
        ("timm", "vit_tiny_patch16_224", "patch_embed", "blocks.11", 4, 64, {"img_size": 64}),
        ("timm", "vit_small_patch14_reg4_dinov2", "patch_embed", "blocks.11", 6, 84, {"img_size": 84}),
        ("timm", "swin_tiny_patch4_window7_224", "patch_embed", "layers.3", 14, 56, {"img_size": 56, "window_size": 7}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_torchvision_and_timm(library, name, first, last, side, size, options):
    """No change at gamma 0, with all of their dropout; and where cells are dropped, they are."""
    try:
        module = pytest.importorskip(library, exc_type=ImportError)
    except RuntimeError as error:  # torchvision beside a torch that it was not built for
        pytest.skip(str(error))
    make = partial(module.create_model, name) if library == "timm" else getattr(module, name)
    x, y = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(1)), Y[:2]
    model = make(num_classes=CLASSES, **options).train()
    layer = droptop.attach(model, first, last, CLASSES, gamma=0.0)
    results = []
    for labels in (nullcontext(), layer.labels(y)):
        torch.manual_seed(7)
        with labels:
            results.append(model(x))
    assert torch.equal(*results)
    layer.remove()
    layer = droptop.attach(model, first, last, CLASSES, gamma=20.0, drop="top")
    given = []
    model.get_submodule(first).register_forward_hook(lambda module, x, output: given.append(output))
    with layer.labels(y):
        model(x).sum().backward()
    assert layer.trace.mask.shape == (2, side, side)
    cells = given[-1].flatten(2).transpose(1, 2) if given[-1].shape[-1] == side else given[-1].flatten(1, -2)
    assert torch.equal((cells == 0).all(-1), layer.trace.mask.flatten(1) == 0)


def test_channels_that_equal_the_height_are_still_channels():
    """Maps (B, 6, 6, 8) of images that are not square: six channels."""
    stem, body = nn.Conv2d(3, 6, 1), nn.Conv2d(6, 5, 3, stride=2, padding=1)
    model = nn.Sequential(stem, body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 4))
    layer = droptop.attach(model, "0", "1", classes=4)
    with layer.labels(torch.tensor([0, 1])):
        model(torch.rand(2, 3, 6, 8))
    assert layer.trace.mask.shape == (2, 6, 8)


def test_the_last_map_is_what_the_submodule_gave():
    """Even where what follows writes into it."""
    stem, body = nn.Conv2d(3, 6, 1), nn.Conv2d(6, 5, 3, stride=2, padding=1)
    model = nn.Sequential(stem, body, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 4))
    layer = droptop.attach(model, "0", "1", classes=4)
    x = torch.rand(2, 3, 8, 8)
    with layer.labels(torch.tensor([0, 1])):
        model(x)
    with torch.no_grad():
        assert torch.equal(layer.trace.attention, droptop.fuse(stem(x), body(stem(x))))


def test_a_generator_of_another_device_waits_for_the_model():
    _, layer = attached()
    state = layer.state_dict()
    layer.load_state_dict(state | {"generator": torch.zeros(16, dtype=torch.uint8)})
    assert len(layer.waiting) == 16
    layer.load_state_dict(state)
    assert layer.waiting is None


def test_what_is_the_wrong_way_round_is_refused():
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
