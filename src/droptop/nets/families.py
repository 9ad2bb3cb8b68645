"""Where the nets of timm and torchvision have their maps, their classifier, and what they draw at random."""

from typing import NamedTuple

from torch import nn

from droptop.errors import BadRequest


class Maps(NamedTuple):
    """Name the submodules that give the first and the last map; `.*` stands for the last part of a submodule."""

    first: str
    last: str


FAMILIES = (  # the first one that a net has both submodules of
    Maps("maxpool", "layer4"),  # ResNet and its kin, in both libraries
    Maps("stem", "stages.*"),  # ConvNeXt, ResNetV2, NFNet, MaxViT, MobileViT, RepVGG
    Maps("stem", "s4"),  # RegNet
    Maps("stem", "trunk_output.*"),  # RegNet of torchvision
    Maps("stem", "layers.*"),  # FocalNet
    Maps("stem", "blocks.*"),  # MLP-Mixer, ConvMixer, MaxViT of torchvision
    Maps("stem", "features.*"),  # ReXNet
    Maps("bn1", "blocks.*"),  # EfficientNet, MobileNet
    Maps("patch_embed", "blocks.*"),  # ViT, DeiT, BEiT, EVA
    Maps("patch_embed", "layers.*"),  # Swin
    Maps("patch_embed", "stages.*"),  # PVT, Hiera, TinyViT
    Maps("patch_embed", "levels.*"),  # NesT
    Maps("conv_proj", "encoder.layers.*"),  # ViT of torchvision
    Maps("features.pool0", "features.*"),  # DenseNet
    Maps("features.0", "features.*"),  # ConvNeXt, EfficientNet, MobileNet, Swin and VGG of torchvision
)
RATES = ("drop_prob", "drop_rate", "drop_path_rate", "dropout", "attention_dropout", "attn_drop_rate")


def maps_of(net: nn.Module, name: str, first: str | None, last: str | None) -> Maps:
    """Return the names of a net's maps: those given or else its family's; refuse a net of no family without them."""
    if first is not None and last is not None:
        return Maps(first, last)
    modules = dict(net.named_modules())
    for family in FAMILIES:
        parent, star, _ = family.last.partition(".*")
        parts = [part for part, _ in modules[parent].named_children()] if parent in modules else []
        found = f"{parent}.{parts[-1]}" if star and parts else parent
        if family.first in modules and found in modules and (parts or not star):
            return Maps(first or family.first, last or found)
    raise BadRequest(
        f"--net {name} is of no family that droptop knows: name the submodules that give its maps by --first and "
        f"--last; it has {', '.join(part for part, _ in net.named_children())}"
    )


def classifiers(net: nn.Module, classes: int) -> list[str]:
    """Return the names of the layers that give a number per class: those that timm notes, or the last that is so wide.

    There is one, but for nets with several heads.
    """
    noted = getattr(net, "pretrained_cfg", {}).get("classifier")
    if noted:
        names = [noted] if isinstance(noted, str) else noted
        return [name for name, _ in net.named_modules() if name in names]
    wide = [
        name
        for name, layer in net.named_modules()
        if isinstance(layer, nn.Linear | nn.Conv2d) and len(layer.weight) == classes
    ]
    return wide[-1:]


def draw_nothing(net: nn.Module) -> None:
    """Switch off dropout and stochastic depth: what they draw is not in the state of a learner."""
    for layer in net.modules():
        rates = [*RATES, "p"] if "Drop" in type(layer).__name__ or "Depth" in type(layer).__name__ else RATES
        for rate in rates:
            if isinstance(vars(layer).get(rate), float | int):
                setattr(layer, rate, 0.0)
