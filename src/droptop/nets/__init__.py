"""Backbones: every one is stem -> trunk -> head."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from droptop.errors import BadRequest, require
from droptop.nets.backbone import Backbone, Features, evaluating, flat_buffers, last_map, untracked
from droptop.nets.precision import Precision, compute_in
from droptop.nets.resnet import ResNet18, Stem
from droptop.rng import seeded

__all__ = ["Backbone", "Features", "NetConfig", "Precision", "ResNet18", "build", "compute_in", "evaluating",
           "flat_buffers", "last_map", "load_weights", "untracked"]


@dataclass(frozen=True)
class NetConfig:
    net: Literal["resnet18"] = "resnet18"
    """Backbone."""
    width: int = 64
    """Channels of the first stage (nf)."""
    stem: Stem = "3x3"
    """First layer: kernel / stride, with or without pooling."""

    def __post_init__(self) -> None:
        require(self.width >= 1, "width", "a number of channels from 1", self.width)
        require(self.stem in get_args(Stem), "stem", f"one of {', '.join(get_args(Stem))}", self.stem)


def build(config: NetConfig, channels: int, classes: int, seed: int) -> Backbone:
    """The backbone with the initial weights of this seed, whatever was drawn before."""
    with seeded(seed, "init"):
        return ResNet18(channels, classes, config.width, config.stem)


def load_weights(model: Backbone, path: Path) -> None:
    """Fills the backbone from a safetensors file, such as torchvision's; a mismatch names the tensors."""
    try:
        found = load_file(path)
    except (OSError, SafetensorError) as error:
        raise BadRequest(f"--weights takes a safetensors file; {path}: {error}") from None
    found = {name: tensor for name, tensor in found.items() if not name.endswith("num_batches_tracked")}
    wanted = model.state_dict()
    wrong = sorted({name for name in wanted if name not in found or found[name].shape != wanted[name].shape}
                   | (found.keys() - wanted.keys()))
    if wrong:
        named = ", ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        raise BadRequest(f"--weights {path} does not fit this net: {named}")
    with torch.no_grad():
        for name, tensor in wanted.items():
            tensor.copy_(found[name])
