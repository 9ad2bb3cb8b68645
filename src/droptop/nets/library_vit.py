"""A plain ViT of timm as droptop's own, which can be given prompts: it has timm's arithmetic and parameter names."""

import dataclasses

import torch

from droptop.errors import BadRequest
from droptop.nets import weights as origin
from droptop.nets.backbone import evaluating
from droptop.nets.library_net import LibraryNet
from droptop.nets.vit import ViT, ViTConfig, vit_like

TOLERANCE = 1e-3  # largest difference of features, which a norm has brought to about 1


def plain_vit(model: LibraryNet, config: ViTConfig, classes: int) -> ViT:
    """Return droptop's ViT with the weights of a library's, and a classifier of torch's global generator.

    Raises BadRequest if the net is none, or has something besides: another pooling, registers, a scale of its layers.
    """
    try:
        model.take_out_classifier()
        tensors = {name: value.clone() for name, value in model.net.state_dict().items()}
        heads = getattr(getattr(model.net.get_submodule("blocks.0"), "attn", None), "num_heads", None)
        vit = vit_like(dataclasses.replace(config, heads=heads), classes, tensors, config.net)
        origin.fill(vit, tensors, config.net)
    except (BadRequest, AttributeError):
        raise not_plain(config.net) from None
    x = torch.linspace(-1, 1, 3 * vit.input_size**2).view(1, 3, vit.input_size, vit.input_size)
    with evaluating(model), evaluating(vit):
        apart = (vit.features(x).pooled - model(x)).abs().max()
    if not apart <= TOLERANCE:
        raise not_plain(config.net)
    vit.pixels = model.pixels
    return vit


def not_plain(net: str) -> BadRequest:
    """Return the refusal of a net that cannot be given prompts."""
    return BadRequest(
        f"--net {net} cannot be given prompts: with this method take a plain ViT, such as timm:vit_base_patch16_224"
    )
