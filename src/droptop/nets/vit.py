"""Vision transformer (Dosovitskiy et al., 2021) as stem -> trunk -> head, with timm's arithmetic and parameter names.

    stem    images resized to the size of the weights; patch embeddings (B, width, h, w), before positions are added
    trunk   class token and positions, the blocks, the final norm of the class token; the last map is the last block's
            patch tokens before that norm
    head    a linear layer on the class token

A block may be given prefixes for each sample: keys and values that its attention sees in front of those of the tokens,
as in prefix tuning (Li and Liang, 2021). Patch, width, depth and image size follow from the shapes of the weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from droptop.errors import BadRequest, require
from droptop.nets.backbone import Backbone, Features

# Legend: B samples, n tokens (the class token first), d = width, e = d / heads, l prefixes.
Prefixes = Mapping[int, Tensor]  # by block, counted from 0: 2 (keys, values), B, heads, l, e

SMALL = {"patch": 8, "width": 64, "depth": 6, "input_size": 64}  # the net that random weights make by default


@dataclass(frozen=True)
class ViTConfig:
    """Hold the settings of a ViT; None takes what the weights have."""

    net: str = "vit"
    """Kind of net: droptop's own (resnet18, or vit with methods on frozen features), or timm:NAME or
    torchvision:NAME."""
    patch: int | None = None
    """Pixels per side of a patch; by default that of the weights (8 where they are random)."""
    width: int | None = None
    """Numbers per token; by default that of the weights (64 where they are random)."""
    depth: int | None = None
    """Number of blocks; by default that of the weights (6 where they are random)."""
    heads: int | None = None
    """Attention heads per block; by default width / 64."""
    input_size: int | None = None
    """Pixels per side that images are resized to, and positions resampled for; by default that of the weights (64)."""
    pixel_mean: float = 0.5
    """Mean by which pixels in [0, 1] are normalised, as they were when the weights were trained."""
    pixel_std: float = 0.5
    """Standard deviation by which pixels are normalised."""

    def __post_init__(self) -> None:
        for name in ("patch", "width", "depth", "heads", "input_size"):
            value = getattr(self, name)
            require(value is None or value >= 1, name, "a number from 1", value)
        require(0 <= self.pixel_mean <= 1, "pixel_mean", "a number from 0 to 1", self.pixel_mean)
        require(0 < self.pixel_std < float("inf"), "pixel_std", "a number above 0", self.pixel_std)


class Attention(nn.Module):
    """Multi-head self-attention, with optional prefixes."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor, prefix: Tensor | None) -> Tensor:
        """Attend from each token to all tokens and, where given, to its sample's prefixes."""
        query, key, value = (
            part.unflatten(2, (self.heads, -1)).transpose(1, 2)  # each B, heads, n, e
            for part in self.qkv(x).chunk(3, 2)
        )
        if prefix is not None:
            key, value = (torch.cat([extra.to(part.dtype), part], 2) for extra, part in zip(prefix, (key, value)))
        return self.proj(F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """Two linear layers with GELU between them."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    """Attention and MLP, each behind a norm and with a shortcut around it."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = MLP(width, hidden)

    def forward(self, x: Tensor, prefix: Tensor | None = None) -> Tensor:
        x = x + self.attn(self.norm1(x), prefix)
        return x + self.mlp(self.norm2(x))


class ViT(Backbone):
    """A vision transformer with timm's names for its parameters."""

    def __init__(
        self, classes: int, patch: int, width: int, depth: int, heads: int, input_size: int, hidden: int | None = None
    ) -> None:
        super().__init__()
        self.patch, self.width, self.heads, self.input_size = patch, width, heads, input_size
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, width, patch, patch)})
        self.cls_token = nn.Parameter(torch.randn(1, 1, width) * 1e-6)
        self.pos_embed = nn.Parameter(torch.randn(1, 1 + (input_size // patch) ** 2, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads, hidden or 4 * width) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self._modules["head"] = nn.Linear(width, classes)  # timm's name; see `classifier`

    def stem(self, x: Tensor) -> Tensor:
        """Return the patch embeddings (B, width, h, w), without positions."""
        size = (self.input_size, self.input_size)
        if x.shape[2:] != size:
            x = F.interpolate(x, size, mode="bilinear", antialias=True)
        return self.patch_embed["proj"](x.expand(-1, 3, -1, -1))  # grey is three equal channels

    def trunk(self, first: Tensor, prefixes: Prefixes | None = None) -> Features:
        """Return the last block's patch tokens as a map, and the normed class token."""
        tokens = torch.cat([self.cls_token.expand(first.shape[0], -1, -1), first.flatten(2).transpose(1, 2)], 1)
        tokens = tokens + self.pos_embed
        for index, block in enumerate(self.blocks):
            tokens = block(tokens, None if prefixes is None else prefixes.get(index))
        return Features(tokens[:, 1:].transpose(1, 2).unflatten(2, first.shape[2:]), self.norm(tokens[:, 0]))

    def head(self, features: Features) -> Tensor:
        return self.classifier(features.pooled)

    @property
    def classifier(self) -> nn.Linear:
        """Return the layer that timm names `head`; `self.head` is the method that applies it."""
        layer = self._modules["head"]
        assert isinstance(layer, nn.Linear)
        return layer


def resample_positions(positions: Tensor, grid: int) -> Tensor:
    """Resample position embeddings (1, 1 + g * g, d) to a grid of another size; that of the class token stays."""
    token, patches = positions[:, :1], positions[:, 1:]
    old = round(patches.shape[1] ** 0.5)
    if old == grid:
        return positions
    square = patches.unflatten(1, (old, old)).permute(0, 3, 1, 2).float()
    square = F.interpolate(square, (grid, grid), mode="bicubic", antialias=True)
    return torch.cat([token, square.flatten(2).transpose(1, 2).to(token.dtype)], 1)


def random_vit(config: ViTConfig, classes: int) -> ViT:
    """Return a small ViT with random weights."""
    shape = {name: getattr(config, name) or value for name, value in SMALL.items()}
    return _checked(config, classes, shape, None)


def vit_like(config: ViTConfig, classes: int, weights: dict[str, Tensor], name: str) -> ViT:
    """Return a new ViT of the shape that these weights have, and resample the positions among them to the image size.

    Raises BadRequest if the weights are not those of a ViT, or the settings ask for another shape. `name` is what the
    user calls the weights.
    """
    needed = ("cls_token", "pos_embed", "patch_embed.proj.weight", "blocks.0.mlp.fc1.weight")
    if missing := [tensor for tensor in needed if tensor not in weights]:
        raise BadRequest(f"--weights {name} is no ViT by timm's names: it lacks {', '.join(missing)}")
    check_shapes(weights, name)
    patch, grid = weights["patch_embed.proj.weight"].shape[-1], (weights["pos_embed"].shape[1] - 1) ** 0.5
    if grid != int(grid) or grid == 0:
        raise BadRequest(
            f"--weights {name}: pos_embed has {weights['pos_embed'].shape[1]} rows, not one for the class "
            "token and a square of patches"
        )
    shape = {
        "patch": patch,
        "width": weights["cls_token"].shape[-1],
        "input_size": int(grid) * patch,
        "depth": len({tensor.split(".")[1] for tensor in weights if tensor.startswith("blocks.")}),
    }
    for option in ("patch", "width", "depth"):
        value = getattr(config, option)
        require(value in (None, shape[option]), option, f"{shape[option]} with --weights {name}", value)
    model = _checked(config, classes, shape, len(weights["blocks.0.mlp.fc1.weight"]))
    weights["pos_embed"] = resample_positions(weights["pos_embed"].float(), model.input_size // patch)
    return model


def check_shapes(weights: dict[str, Tensor], name: str) -> None:
    """Raise BadRequest for what is not of a ViT's shapes: else a small file could ask for a large net."""
    width = weights["cls_token"].numel()
    hidden = weights["blocks.0.mlp.fc1.weight"].numel() // max(1, width)
    patch, rows = weights["patch_embed.proj.weight"].shape[-1:], weights["pos_embed"].shape[1:2]
    shapes = {
        "cls_token": (1, 1, width),
        "pos_embed": (1, *rows, width),
        "patch_embed.proj.weight": (width, 3, *patch, *patch),
    }
    for block in {tensor.split(".")[1] for tensor in weights if tensor.startswith("blocks.")}:
        shapes |= {
            f"blocks.{block}.attn.qkv.weight": (3 * width, width),
            f"blocks.{block}.mlp.fc1.weight": (hidden, width),
        }
    wrong = [tensor for tensor, shape in shapes.items() if tensor not in weights or weights[tensor].shape != shape]
    if wrong or not all((width, hidden, *patch)):
        raise BadRequest(f"--weights {name} does not fit a ViT: {min(wrong, default='cls_token')}")


def _checked(config: ViTConfig, classes: int, shape: dict[str, int], hidden: int | None) -> ViT:
    patch, width = shape["patch"], shape["width"]
    input_size, heads = config.input_size or shape["input_size"], config.heads or max(1, width // 64)
    require(input_size % patch == 0, "input_size", f"a multiple of the patch size {patch}", input_size)
    require(width % heads == 0, "heads", f"a divisor of the width {width}", heads)
    return ViT(classes, patch, width, shape["depth"], heads, input_size, hidden)
