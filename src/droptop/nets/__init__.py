"""Backbones: every one is stem -> trunk -> head."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from droptop.errors import BadRequest, require
from droptop.nets import weights as origin
from droptop.nets.adapted import Adapted, adapt
from droptop.nets.backbone import Backbone, Features, evaluating, flat_buffers, last_map, least_rows, untracked
from droptop.nets.precision import Precision, allow_tf32, compute_in
from droptop.nets.resnet import ResNet18, Stem
from droptop.nets.vit import ViT, ViTConfig, random_vit, vit_like
from droptop.rng import seeded

__all__ = [
    "Adapted",
    "Backbone",
    "Features",
    "NetConfig",
    "Precision",
    "ResNet18",
    "ViT",
    "ViTConfig",
    "adapt",
    "allow_tf32",
    "build",
    "compute_in",
    "evaluating",
    "flat_buffers",
    "last_map",
    "least_rows",
    "load_weights",
    "untracked",
]


@dataclass(frozen=True)
class NetConfig:
    """Hold the settings of a ResNet."""

    net: Literal["resnet18"] = "resnet18"
    """Kind of net."""
    width: int = 64
    """Channels of the first stage."""
    stem: Stem = "3x3"
    """First layer: size of the kernel / stride, with or without pooling."""

    def __post_init__(self) -> None:
        require(self.width >= 1, "width", "a number of channels from 1", self.width)
        require(self.stem in get_args(Stem), "stem", f"one of {', '.join(get_args(Stem))}", self.stem)


def build(
    config: NetConfig | ViTConfig, channels: int, classes: int, seed: int, weights: str | None = None
) -> Backbone:
    """Build a backbone with the given weights; what these leave out is drawn by the seed."""
    if isinstance(config, ViTConfig):
        return _vit(config, classes, seed, weights)
    if weights == origin.RANDOM:
        raise BadRequest("--weights takes a file or hf:OWNER/NAME with a ResNet, whose weights are random without it")
    with seeded(seed, "init"):
        model = ResNet18(channels, classes, config.width, config.stem)
    if weights is not None:
        load_weights(model, origin.locate(weights))
    return model


def _vit(config: ViTConfig, classes: int, seed: int, weights: str | None) -> ViT:
    if weights is None:
        raise BadRequest(
            "a ViT takes pretrained weights: --weights FILE.safetensors by timm's names, --weights "
            "hf:timm/vit_base_patch16_224.augreg_in21k or, for a quick look, --weights random"
        )
    tensors = None if weights == origin.RANDOM else origin.read(origin.locate(weights))
    with seeded(seed, "init"):
        if tensors is not None:
            model = vit_like(config, classes, tensors, weights)
            origin.fill(model, tensors, weights)
            return model
        classifier = random_vit(config, classes).classifier
    with seeded(0, "random weights"):  # the same for every seed, as the weights of a file are
        model = random_vit(config, classes)
    model.classifier.load_state_dict(classifier.state_dict())
    return model


def load_weights(model: Backbone, path: Path) -> None:
    """Load a safetensors file, such as torchvision's, into a backbone; raise BadRequest naming what does not fit."""
    origin.fill(model, origin.read(path), str(path))
