"""Backbones: every one is stem -> trunk -> head."""

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from droptop.errors import BadRequest, require
from droptop.nets import libraries
from droptop.nets import weights as origin
from droptop.nets.adapted import Adapted, adapt
from droptop.nets.backbone import Backbone, Features, evaluating, flat_buffers, last_map, least_rows, untracked
from droptop.nets.libraries import is_library_net, library_of
from droptop.nets.library_net import LibraryNet
from droptop.nets.library_vit import plain_vit
from droptop.nets.precision import Precision, allow_tf32, compute_in
from droptop.nets.resnet import ResNet18, Stem
from droptop.nets.vit import ViT, ViTConfig, random_vit, vit_like
from droptop.rng import seeded

__all__ = [
    "Adapted",
    "Backbone",
    "Features",
    "LibraryNet",
    "NetConfig",
    "Precision",
    "ResNet18",
    "ViT",
    "ViTConfig",
    "adapt",
    "allow_tf32",
    "build",
    "build_library_net",
    "compute_in",
    "evaluating",
    "flat_buffers",
    "is_library_net",
    "last_map",
    "least_rows",
    "library_of",
    "load_weights",
    "untracked",
]


@dataclass(frozen=True)
class NetConfig:
    """Hold the settings of a ResNet, or of a net of a library."""

    net: str = "resnet18"
    """Kind of net: droptop's own (resnet18, or vit with methods on frozen features), or timm:NAME or
    torchvision:NAME."""
    width: int = 64
    """Channels of the first stage."""
    stem: Stem = "3x3"
    """First layer: size of the kernel / stride, with or without pooling."""
    input_size: int | None = None
    """Pixels per side that a net of a library gets images resized to; by default they stay as they are or, where it
    begins with weights, are as large as when these were trained."""

    def __post_init__(self) -> None:
        require(self.width >= 1, "width", "a number of channels from 1", self.width)
        require(self.stem in get_args(Stem), "stem", f"one of {', '.join(get_args(Stem))}", self.stem)
        require(self.input_size is None or self.input_size >= 1, "input_size", "a number from 1", self.input_size)


def build(
    config: NetConfig | ViTConfig, channels: int, classes: int, seed: int, weights: str | None = None
) -> Backbone:
    """Build a backbone of droptop's own with the given weights; what these leave out is drawn by the seed."""
    own = type(config).net
    require(config.net == own, "net", f"{own}, timm:NAME or torchvision:NAME", config.net)
    if isinstance(config, ViTConfig):
        return _vit(config, classes, seed, weights)
    if weights == origin.RANDOM:
        raise BadRequest("--weights takes a file or hf:OWNER/NAME with a ResNet, whose weights are random without it")
    with seeded(seed, "init"):
        model = ResNet18(channels, classes, config.width, config.stem)
    if weights is not None:
        load_weights(model, origin.locate(weights))
    return model


def build_library_net(
    config: NetConfig | ViTConfig,
    shape: tuple[int, int, int],
    classes: int,
    seed: int,
    weights: str | None,
    pretrained: bool,
    maps: tuple[str | None, str | None] = (None, None),
    as_vit: bool = False,
) -> Backbone:
    """Build the net of a library that a configuration names; what it has no weights for is drawn by the seed.

    `maps` are the names of the submodules that give its maps, where its family does not say. Of methods on frozen
    features, random weights are the same for every seed, as those of a file are; `as_vit` gives droptop's own ViT.
    """
    frozen = isinstance(config, ViTConfig)
    if frozen and weights is None and not pretrained:
        raise BadRequest(
            f"--net {config.net} is frozen with this method and takes weights: --pretrained, --weights "
            "FILE.safetensors or, for a quick look, --weights random"
        )
    require(not (pretrained and weights), "pretrained", "no --weights beside it", weights)
    with seeded(0, "random weights") if frozen and weights == origin.RANDOM else seeded(seed, "init"):
        model = libraries.build(
            config.net,
            shape,
            classes,
            input_size=config.input_size,
            weights=weights,
            pretrained=pretrained,
            first=maps[0],
            last=maps[1],
        )
    if not (as_vit and isinstance(config, ViTConfig)):
        return model
    with seeded(seed, "init"):
        return plain_vit(model, config, classes)


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
