"""Maps as other people's models have them: channels last, tokens, one cell; torchvision's and timm's own models."""

import warnings
from contextlib import nullcontext
from functools import partial

import pytest
import torch
from torch import nn

import droptop
from droptop import BadRequest

from .attaching import X, Y, attached, seeded
from models import CLASSES, ConvNeXt, VisionTransformer


def test_channels_may_come_last():
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


def test_tokens_that_are_no_square_need_a_grid():
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


def test_a_last_map_of_one_cell_is_warned_of_or_refused():
    model, layer = attached(last="avgpool")
    with pytest.warns(UserWarning, match="1 x 1, so that fusion does nothing: let last"), layer.labels(Y):
        model(X)
    with warnings.catch_warnings(), layer.labels(Y):
        model(X)  # once is enough
    _, layer = attached(last="avgpool", attention="last")
    with pytest.raises(BadRequest, match="larger than 1 x 1"), layer.labels(Y):
        layer.model(X)


def test_channels_that_equal_the_height_are_still_channels():
    """Maps (B, 6, 6, 8) of images that are not square: six channels."""
    stem, body = nn.Conv2d(3, 6, 1), nn.Conv2d(6, 5, 3, stride=2, padding=1)
    model = nn.Sequential(stem, body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 4))
    layer = droptop.attach(model, "0", "1", classes=4)
    with layer.labels(torch.tensor([0, 1])):
        model(torch.rand(2, 3, 6, 8))
    assert layer.trace.mask.shape == (2, 6, 8)


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
def test_models_of_torchvision_and_timm(library, name, first, last, side, size, options):
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
