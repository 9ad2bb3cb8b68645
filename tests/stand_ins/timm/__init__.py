"""A stand-in for timm: its functions that droptop calls, which make small nets with the names of timm's parts."""

from types import SimpleNamespace

import torch
from torch import nn

import models


def plain_vit(size):
    """Return a ViT with the parameter names of timm's, which is droptop's own."""
    from droptop.nets.vit import ViT

    class PlainViT(nn.Module):
        def __init__(self, classes):
            super().__init__()
            side = size if isinstance(size, int) else size[0]
            assert side % 4 == 0, "the patch does not divide the image"
            vit = ViT(classes, 4, 16, 5, 2, side, 32)
            for name, part in vit.named_children():
                self.add_module(name, part)
            self.cls_token, self.pos_embed = vit.cls_token, vit.pos_embed
            self.patch_embed = PatchEmbed(vit.patch_embed["proj"])
            for block in self.blocks:
                block.attn.num_heads = 2

        def forward(self, x):
            tokens = torch.cat([self.cls_token.expand(len(x), -1, -1), self.patch_embed(x)], 1) + self.pos_embed
            for block in self.blocks:
                tokens = block(tokens)
            return self.head(self.norm(tokens)[:, 0])

    return PlainViT


class PatchEmbed(nn.Module):
    def __init__(self, proj):
        super().__init__()
        self.proj = proj

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class DropPath(nn.Module):
    """Stochastic depth, as timm names its rate."""

    def __init__(self):
        super().__init__()
        self.drop_prob = 0.2

    def forward(self, x):
        if self.drop_prob == 0 or not self.training:
            return x
        return x * torch.rand(len(x), 1, 1, 1).gt(self.drop_prob)


class ConvNeXt(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 6, 2, 2), models.ChannelsLast(6))
        self.stages = nn.Sequential(models.ConvNeXtBlock(6), nn.Sequential(nn.Conv2d(6, 6, 2, 2), DropPath()))
        self.head = nn.Linear(6, classes)

    def forward(self, x):
        return self.head(self.stages(self.stem(x)).mean((2, 3)))


class EfficientNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv_stem = nn.Conv2d(3, 8, 3, 2, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.blocks = nn.Sequential(*(nn.Conv2d(8, 8, 3, 1, 1, groups=8) for _ in range(2)))
        self.classifier, self.drop_rate = nn.Linear(8, classes), 0.2

    def forward(self, x):
        x = self.blocks(self.bn1(self.conv_stem(x)).relu()).mean((2, 3))
        return self.classifier(nn.functional.dropout(x, self.drop_rate, self.training))


class RegNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU())
        self.s1, self.s4 = nn.Conv2d(8, 8, 3, 1, 1), nn.Conv2d(8, 12, 3, 2, 1)
        self.head = nn.ModuleDict({"fc": nn.Linear(12, classes)})

    def forward(self, x):
        return self.head["fc"](self.s4(self.s1(self.stem(x))).mean((2, 3)))


class Swin(nn.Module):
    """Its maps have channels last."""

    def __init__(self, classes):
        super().__init__()
        self.patch_embed = ChannelsLastConv(3, 6, 4)
        self.layers = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 10))
        self.head = nn.ModuleDict({"fc": nn.Linear(10, classes)})

    def forward(self, x):
        return self.head["fc"](self.layers(self.patch_embed(x)).mean((1, 2)))


class ChannelsLastConv(nn.Module):
    def __init__(self, inputs, outputs, patch):
        super().__init__()
        self.proj = nn.Conv2d(inputs, outputs, patch, patch)

    def forward(self, x):
        return self.proj(x).permute(0, 2, 3, 1)


class Unheard(nn.Module):
    """Of no family."""

    def __init__(self, classes):
        super().__init__()
        self.begin, self.end, self.out = nn.Conv2d(3, 4, 3, 2), nn.Conv2d(4, 4, 3, 1), nn.Linear(4, classes)

    def forward(self, x):
        return self.out(self.end(self.begin(x)).mean((2, 3)))


NETS = {
    "resnet9": (lambda size: lambda classes: models.ResNet(classes=classes, dropout=0.5), "fc"),
    "convnext_bit": (lambda size: ConvNeXt, "head"),
    "efficientnet_bit": (lambda size: EfficientNet, "classifier"),
    "regnet_bit": (lambda size: RegNet, "head.fc"),
    "swin_bit": (lambda size: Swin, "head.fc"),
    "vit_bit_patch4_24": (plain_vit, "head"),
    "unheard": (lambda size: Unheard, "out"),
}
MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)


def list_models():
    return sorted(NETS)


def get_pretrained_cfg(name):
    if "." in name:
        raise RuntimeError(f"Invalid pretrained tag for {name}.")
    fixed = name.startswith("vit")
    return SimpleNamespace(
        input_size=(3, 24, 24), mean=MEAN, std=STD, fixed_input_size=fixed, has_weights=name != "unheard"
    )


def create_model(name, pretrained=False, num_classes=1000, img_size=24):
    make, classifier = NETS[name]
    net = make(img_size)(num_classes)
    if pretrained:  # as timm, which fetches once the net is made
        raise OSError("we are not on line.\nCheck your connection.")
    net.pretrained_cfg = {"classifier": classifier}
    return net
