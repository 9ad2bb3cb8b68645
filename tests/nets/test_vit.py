"""The ViT against plain arithmetic, against timm where it is installed, and against files that do not fit."""

import math

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from droptop import BadRequest
from droptop.nets import ViT, ViTConfig, build, compute_in, evaluating, last_map
from droptop.nets.vit import resample_positions

SHAPE = (3, 16, 16)


def small_vit(**options):
    return build(
        ViTConfig(**{"patch": 4, "width": 24, "depth": 3, "heads": 3, "input_size": 16} | options), 3, 5, 0, "random"
    )


def images(count=2, size=16):
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(0))


def slow_block(block, tokens, prefix, heads):
    """A block as the papers write it: one head at a time, softmax over prefixes and tokens, one after another."""
    width = tokens.shape[-1]
    size = width // heads
    normed = F.layer_norm(tokens, (width,), block.norm1.weight, block.norm1.bias, 1e-6)
    weight, bias = block.attn.qkv.weight, block.attn.qkv.bias
    outputs = []
    for head in range(heads):
        query, key, value = (
            normed @ weight[part * width + head * size :][:size].T + bias[part * width + head * size :][:size]
            for part in range(3)
        )
        if prefix is not None:
            key, value = torch.cat([prefix[0][:, head], key], 1), torch.cat([prefix[1][:, head], value], 1)
        scores = torch.softmax(query @ key.transpose(1, 2) / math.sqrt(size), -1)
        outputs.append(scores @ value)
    tokens = tokens + F.linear(torch.cat(outputs, -1), block.attn.proj.weight, block.attn.proj.bias)
    normed = F.layer_norm(tokens, (width,), block.norm2.weight, block.norm2.bias, 1e-6)
    hidden = F.linear(normed, block.mlp.fc1.weight, block.mlp.fc1.bias)
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))
    return tokens + F.linear(hidden, block.mlp.fc2.weight, block.mlp.fc2.bias)


@pytest.mark.parametrize("blocks", [[], [0], [1, 2], [0, 1, 2]])
def test_trunk_with_prefixes_against_the_long_way(blocks):
    model, x = small_vit().double(), images().double()
    random = torch.Generator().manual_seed(1)
    prefixes = {block: torch.randn(2, 2, 3, 5 + block, 8, generator=random, dtype=torch.float64) for block in blocks}
    first = model.stem(x)
    patches = torch.stack([first[:, :, row, column] for row in range(4) for column in range(4)], 1)
    tokens = torch.cat([model.cls_token.expand(2, 1, 24), patches], 1) + model.pos_embed
    for index, block in enumerate(model.blocks):
        tokens = slow_block(block, tokens, prefixes.get(index), heads=3)
    features = model.trunk(first, prefixes)
    torch.testing.assert_close(features.map[:, :, 2, 3], tokens[:, 1 + 2 * 4 + 3])  # before the final norm
    pooled = F.layer_norm(tokens[:, 0], (24,), model.norm.weight, model.norm.bias, 1e-6)
    torch.testing.assert_close(features.pooled, pooled)
    torch.testing.assert_close(
        model.head(features), F.linear(pooled, model.state_dict()["head.weight"], model.state_dict()["head.bias"])
    )
    if not blocks:
        torch.testing.assert_close(model(x), model.head(features))


def test_the_first_map_is_the_patches_before_positions():
    model, x = small_vit(), images()
    first = model.stem(x)
    assert first.shape == (2, 24, 4, 4)
    weight, bias = model.patch_embed["proj"].weight, model.patch_embed["proj"].bias
    corner = torch.einsum("bcij,dcij->bd", x[:, :, 8:12, 4:8], weight) + bias
    torch.testing.assert_close(first[:, :, 2, 1], corner)
    with torch.no_grad():
        before, _ = model.pos_embed.clone(), model.pos_embed.add_(1)
    assert torch.equal(model.stem(x), first)
    assert not torch.equal(before, model.pos_embed)
    assert last_map(model, first).shape == (2, 24, 4, 4)


def test_images_of_any_size_and_colour_come_at_the_weights_size():
    model, x = small_vit(), images(size=32)
    assert torch.equal(model.stem(x), model.stem(F.interpolate(x, (16, 16), mode="bilinear", antialias=True)))
    # Normalising and resizing may come in either order.
    torch.testing.assert_close(
        model.stem((x - 0.5) / 0.25),
        model.stem((F.interpolate(x, (16, 16), mode="bilinear", antialias=True) - 0.5) / 0.25),
    )
    grey = x[:, :1]
    assert torch.equal(model.stem(grey), model.stem(torch.cat([grey] * 3, 1)))


def test_parameters_have_timms_names():
    names = set(small_vit(depth=1).state_dict())
    assert names == {
        "cls_token",
        "pos_embed",
        *(
            f"{layer}.{part}"
            for part in ("weight", "bias")
            for layer in (
                "patch_embed.proj",
                "blocks.0.norm1",
                "blocks.0.attn.qkv",
                "blocks.0.attn.proj",
                "blocks.0.norm2",
                "blocks.0.mlp.fc1",
                "blocks.0.mlp.fc2",
                "norm",
                "head",
            )
        ),
    }


def test_the_default_net_is_vit_base():
    """timm's vit_base_patch16_224 with 1,000 classes."""
    with torch.device("meta"):
        model = ViT(1000, 16, 768, 12, 12, 224)
    assert sum(weight.numel() for weight in model.parameters()) == 86_567_656


def test_the_vit_gives_timms_output():
    timm = pytest.importorskip("timm")
    theirs = timm.create_model("vit_tiny_patch16_224", img_size=32, patch_size=8, depth=4, num_classes=7).eval()
    ours = ViT(7, 8, 192, 4, 3, 32)
    ours.load_state_dict(theirs.state_dict())
    x = images(4, 32)
    with evaluating(ours):
        torch.testing.assert_close(ours(x), theirs(x), atol=1e-5, rtol=1e-5)
        tokens = theirs.forward_features(x)
        torch.testing.assert_close(ours.trunk(ours.stem(x)).pooled, tokens[:, 0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("grid", [2, 7])
def test_resampled_positions_equal_timms(grid):
    pos_embed = pytest.importorskip("timm.layers.pos_embed")
    positions = torch.randn(1, 17, 24)
    expected = pos_embed.resample_abs_pos_embed(positions, [grid, grid])
    torch.testing.assert_close(resample_positions(positions, grid), expected, atol=1e-6, rtol=1e-6)


def test_positions_are_resampled_to_another_grid():
    positions = torch.randn(1, 17, 24)
    assert resample_positions(positions, 4) is positions
    larger = resample_positions(positions, 8)
    assert larger.shape == (1, 65, 24)
    assert torch.equal(larger[:, 0], positions[:, 0])  # the class token has no place
    ramp = torch.arange(4.0).repeat_interleave(4)[None, :, None]  # grows from row to row
    rows = resample_positions(torch.cat([torch.zeros(1, 1, 1), ramp], 1), 8)[0, 1:, 0].view(8, 8)
    assert (rows.diff(dim=0) > 0).all()
    assert rows.std(dim=1).max() < 1e-6


# -- Weights -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    """A ViT of 5 classes in half precision, by an option of its own for the heads."""

    def write(name="w.safetensors", drop=(), **more):
        tensors = {key: value.half() for key, value in small_vit().state_dict().items() if key not in drop}
        save_file(tensors | more, tmp_path / name)
        return str(tmp_path / name)

    return write


def test_a_file_says_what_shape_it_has(file):
    model = build(ViTConfig(heads=3), 3, 9, 0, file())
    assert (model.patch, model.width, model.input_size, len(model.blocks)) == (4, 24, 16, 3)
    assert all(weight.dtype == torch.float32 for weight in model.parameters())
    source = small_vit()
    assert torch.equal(model.blocks[2].mlp.fc1.weight, source.blocks[2].mlp.fc1.weight.half().float())
    assert model.classifier.weight.shape == (9, 24)  # a head for other classes stays out
    assert torch.equal(
        build(ViTConfig(heads=3), 3, 5, 0, file()).classifier.weight, source.classifier.weight.half().float()
    )
    assert build(ViTConfig(heads=3), 3, 5, 0, file(drop=["head.weight", "head.bias"])).classifier.bias.shape == (5,)
    assert build(ViTConfig(), 3, 9, 0, file()).heads == 1  # width / 64, and never none


def test_heads_of_the_seed_on_weights_of_the_file(file):
    a, b = (build(ViTConfig(heads=3), 3, 9, seed, weights) for seed, weights in ((0, file()), (1, file())))
    assert torch.equal(a.cls_token, b.cls_token)
    assert not torch.equal(a.classifier.weight, b.classifier.weight)
    a, b = (build(ViTConfig(), 3, 9, seed, "random") for seed in (0, 1))
    assert torch.equal(a.blocks[0].attn.qkv.weight, b.blocks[0].attn.qkv.weight)  # random is one set of weights
    assert not torch.equal(a.classifier.weight, b.classifier.weight)


def test_another_image_size_resamples_positions(file):
    model = build(ViTConfig(heads=3, input_size=32), 3, 9, 0, file())
    assert model.pos_embed.shape == (1, 65, 24)
    assert torch.equal(model.pos_embed, resample_positions(small_vit().pos_embed.half().float(), 8))
    assert model(images(size=16)).shape == (2, 9)


@pytest.mark.parametrize(
    ("config", "change", "message"),
    [
        ({}, {"drop": ["blocks.1.norm1.bias"]}, "does not fit this net: blocks.1.norm1.bias"),
        ({}, {"fc_norm.weight": torch.zeros(24)}, "does not fit this net: fc_norm.weight"),
        ({}, {"norm.bias": torch.zeros(25)}, "does not fit this net: norm.bias"),
        ({}, {"drop": ["cls_token"]}, "is no ViT by timm's names: it lacks cls_token"),
        ({}, {"pos_embed": torch.zeros(1, 16, 24)}, "pos_embed has 16 rows"),
        ({"width": 32}, {}, "--width takes 24 with --weights"),
        ({"depth": 12}, {}, "--depth takes 3 with --weights"),
        ({"heads": 5}, {}, "--heads takes a divisor of the width 24, not 5"),
        ({"input_size": 18}, {}, "--input-size takes a multiple of the patch size 4, not 18"),
    ],
)
def test_weights_that_do_not_fit_are_refused_by_name(file, config, change, message):
    with pytest.raises(BadRequest, match=message.replace("(", r"\(")):
        build(ViTConfig(**config), 3, 9, 0, file(**change))


def test_missing_weights_are_refused_with_a_hint():
    with pytest.raises(BadRequest, match=r"--weights FILE\.safetensors.*--weights hf:.*--weights random"):
        build(ViTConfig(), 3, 9, 0)


def test_bf16_is_close_to_float32():
    plain, low = small_vit(), small_vit()
    for weight in low.blocks.parameters():
        weight.requires_grad_(False)  # one part frozen, as for prompt learners
    compute_in(low, SHAPE, "bf16")
    prefix = {1: torch.randn(2, 2, 3, 5, 8, requires_grad=True)}
    logits = [model.head(model.trunk(model.stem(images()), prefix)) for model in (plain, low)]
    assert logits[1].dtype == torch.float32
    torch.testing.assert_close(*logits, atol=0.05, rtol=0.05)
    logits[1].sum().backward()
    assert prefix[1].grad.abs().sum() > 0
