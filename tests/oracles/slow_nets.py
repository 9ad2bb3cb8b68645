"""Nets as formulas of their weights. `mode` says what BatchNorm normalises by, and whether it learns from that:

train    the batch; the running statistics follow
batch    the batch; the running statistics stay
running  the running statistics
"""

import copy
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from droptop.nets import Backbone, Features, ViT


class TinyNet(Backbone):
    """The net that droptop trains: two convolutions with BatchNorm, a first map of 8 x 8 and a last one of 4 x 4."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.conv2, self.norm2 = nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(6)
        self.linear = nn.Linear(6, classes)

    def stem(self, x: Tensor) -> Tensor:
        return self.norm1(self.conv1(x)).relu()

    def trunk(self, first: Tensor, *given: object) -> Features:
        last = self.norm2(self.conv2(first)).relu()
        return Features(last, last.mean((2, 3)))

    def head(self, features: Features) -> Tensor:
        return self.linear(features.pooled)


class SlowNet:
    """What the slow nets share: trained weights, and other tensors, by the names that droptop's net has for them."""

    def __init__(self, model: nn.Module) -> None:
        trained = {name for name, weight in model.named_parameters() if weight.requires_grad}
        state = {name: value.detach().clone() for name, value in model.state_dict().items()}
        self.weights = {name: state[name].requires_grad_() for name in state if name in trained}
        self.others = {name: state[name] for name in state if name not in trained}

    def with_weights(self, weights: dict[str, Tensor]) -> "SlowNet":
        other = copy.copy(self)
        other.weights = weights
        return other

    def logits(self, images: Tensor, mode: str) -> Tensor:
        return self.head(self.trunk(self.stem(images, mode), mode)[1])

    def __getitem__(self, name: str) -> Tensor:
        return self.weights[name] if name in self.weights else self.others[name]


class SlowTinyNet(SlowNet):
    prefix = ""  # of its names

    def stem(self, images: Tensor, mode: str) -> Tensor:
        return self.normalised(
            self.prefix + "norm1", F.conv2d(images, self[self.prefix + "conv1.weight"], padding=1), mode
        ).relu()

    def trunk(self, first: Tensor, mode: str, prefixes: None = None) -> tuple[Tensor, Tensor]:
        """Return the last map and the pooled features."""
        last = F.conv2d(first, self[self.prefix + "conv2.weight"], stride=2, padding=1)
        last = self.normalised(self.prefix + "norm2", last, mode).relu()
        return last, last.mean((2, 3))

    def head(self, pooled: Tensor) -> Tensor:
        return pooled @ self[self.prefix + "linear.weight"].T + self[self.prefix + "linear.bias"]

    def normalised(self, name: str, x: Tensor, mode: str) -> Tensor:
        """BatchNorm by its formula: one mean and one variance per channel, over samples and positions."""
        parts = []
        self.others[f"{name}.num_batches_tracked"] += mode == "train"
        for channel in range(x.shape[1]):
            values = x[:, channel]
            mean, variance = values.mean(), ((values - values.mean()) ** 2).mean()
            if mode == "train":
                unbiased = variance * values.numel() / (values.numel() - 1)
                for kept, new in (("running_mean", mean), ("running_var", unbiased)):
                    running = self.others[f"{name}.{kept}"]
                    running[channel] = 0.9 * running[channel] + 0.1 * new.detach()
            if mode == "running":
                mean, variance = (self.others[f"{name}.{kept}"][channel] for kept in ("running_mean", "running_var"))
            normal = (values - mean) / (variance + 1e-5).sqrt()
            parts.append(normal * self[f"{name}.weight"][channel] + self[f"{name}.bias"][channel])
        return torch.stack(parts, 1)


def tiny_vit(classes: int) -> ViT:
    """The ViT that droptop trains prompts for: images of 8 x 8, patches of 2 x 2, three blocks."""
    return ViT(classes, patch=2, width=8, depth=3, heads=2, input_size=8, hidden=12)


Prefix = tuple[Tensor, Tensor]  # keys and values of a block, (length, heads, e) each


class SlowViT(SlowNet):
    """A vision transformer, sample by sample and head by head. It has no BatchNorm: all modes are the same."""

    heads, blocks, patch = 2, 3, 2
    prefix = "vit."  # of its names

    def stem(self, images: Tensor, mode: str) -> Tensor:
        weight, bias = (self[f"{self.prefix}patch_embed.proj.{name}"] for name in ("weight", "bias"))
        return F.conv2d(images, weight, bias, stride=self.patch)

    def trunk(self, first: Tensor, mode: str, prefixes: list[dict[int, Prefix]] | None = None) -> tuple[Tensor, Tensor]:
        """Return the last block's patch tokens as a map, and the normed class tokens."""
        maps, pooled = [], []
        for sample, embedded in enumerate(first):
            tokens = (
                torch.cat([self[self.prefix + "cls_token"][0], embedded.flatten(1).T])
                + self[self.prefix + "pos_embed"][0]
            )
            for block in range(self.blocks):
                tokens = self.block(block, tokens, prefixes[sample].get(block) if prefixes else None)
            maps.append(tokens[1:].T.view_as(embedded))
            pooled.append(self.layer_norm(self.prefix + "norm", tokens[:1])[0])
        return torch.stack(maps), torch.stack(pooled)

    def block(self, block: int, tokens: Tensor, prefix: Prefix | None) -> Tensor:
        name = f"{self.prefix}blocks.{block}"
        tokens = tokens + self.attend(f"{name}.attn", self.layer_norm(f"{name}.norm1", tokens), prefix)
        hidden = F.gelu(self.linear(f"{name}.mlp.fc1", self.layer_norm(f"{name}.norm2", tokens)))
        return tokens + self.linear(f"{name}.mlp.fc2", hidden)

    def attend(self, name: str, tokens: Tensor, prefix: Prefix | None) -> Tensor:
        queries, keys, values = self.linear(f"{name}.qkv", tokens).chunk(3, 1)
        seen, size = [], tokens.shape[1] // self.heads
        for head in range(self.heads):
            part = slice(head * size, (head + 1) * size)
            query, key, value = queries[:, part], keys[:, part], values[:, part]
            if prefix is not None:
                key, value = torch.cat([prefix[0][:, head], key]), torch.cat([prefix[1][:, head], value])
            seen.append((query @ key.T / math.sqrt(size)).softmax(1) @ value)
        return self.linear(f"{name}.proj", torch.cat(seen, 1))

    def linear(self, name: str, x: Tensor) -> Tensor:
        return x @ self[f"{name}.weight"].T + self[f"{name}.bias"]

    def layer_norm(self, name: str, x: Tensor) -> Tensor:
        centred = x - x.mean(1, keepdim=True)
        return (
            centred / ((centred**2).mean(1, keepdim=True) + 1e-6).sqrt() * self[f"{name}.weight"] + self[f"{name}.bias"]
        )

    def head(self, pooled: Tensor) -> Tensor:
        return self.linear(self.prefix + "head", pooled)
