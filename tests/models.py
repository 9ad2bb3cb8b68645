"""Small models of other people, built and named as torchvision's and timm's are, that know nothing of droptop."""

import torch
import torch.nn.functional as F
from torch import nn

CLASSES = 4


class BasicBlock(nn.Module):
    """torchvision's, which writes over its own maps."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, width=4, classes=CLASSES, dropout=0.0, frozen=False):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(BasicBlock(width, width, 1))
        self.layer4 = nn.Sequential(BasicBlock(width, 2 * width, 2))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(2 * width, classes)
        self.unused = nn.Linear(1, 1)  # as auxiliary heads are
        if frozen:
            self.conv1.requires_grad_(False)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(self.dropout(torch.flatten(self.avgpool(self.layer4(self.layer1(x))), 1)))


class ChannelsLast(nn.LayerNorm):
    """LayerNorm over the channels of (B, c, h, w)."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.dwconv = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.gamma = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, x):
        return x + (self.mlp(self.norm(self.dwconv(x).permute(0, 2, 3, 1))) * self.gamma).permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    """Its `stages.1.blocks.0.mlp` gives maps with channels last."""

    def __init__(self, width=6):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 2, 2), ChannelsLast(width))
        self.stages = nn.Sequential(*(nn.ModuleDict({"blocks": nn.Sequential(ConvNeXtBlock(width))}) for _ in range(2)))
        self.down = nn.Conv2d(width, width, 2, 2)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        x = self.stages[0]["blocks"](self.stem(x))
        return self.head(self.stages[1]["blocks"](self.down(x)).mean((2, 3)))


class PatchEmbed(nn.Module):
    def __init__(self, patch, width):
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Block(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        query, key, value = self.qkv(self.norm1(x)).chunk(3, -1)
        x = x + self.proj(F.scaled_dot_product_attention(query, key, value))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """With a class token and registers in front of the patches."""

    def __init__(self, size=16, patch=4, width=8, depth=2, registers=2, dropout=0.0):
        super().__init__()
        high, wide = (size, size) if isinstance(size, int) else size
        self.patch_embed = PatchEmbed(patch, width)
        self.cls_token = nn.Parameter(torch.randn(1, 1 + registers, width) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, (high // patch) * (wide // patch), width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, dropout) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        tokens = self.patch_embed(x) + self.pos_embed
        tokens = torch.cat([self.cls_token.expand(len(x), -1, -1), tokens], 1)
        return self.head(self.norm(self.blocks(tokens))[:, 0])
