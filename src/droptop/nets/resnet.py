"""ResNet-18 in any width, as stem -> trunk -> head (He et al., 2016).

The stem decides how fine the first map is, and so how small a cell the debiasing layer can drop:

    stem          first map at 32 px    last map    used for
    3x3           32 x 32               4 x 4       CIFAR
    3x3/2         16 x 16               2 x 2       small images on a CPU
    7x7/2         16 x 16               2 x 2       the built-in streams
    7x7/2-pool     8 x 8                1 x 1       64 px and up (at 32 px a 1 x 1 last map leaves nothing to fuse)
"""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from droptop.nets.backbone import Backbone, Features

Stem = Literal["3x3", "3x3/2", "7x7/2", "7x7/2-pool"]


def norm(channels: int) -> nn.BatchNorm2d:
    layer = nn.BatchNorm2d(channels)
    layer.num_batches_tracked = None  # only a momentum of None reads it, and it costs a kernel a layer
    return layer


def make_stem(kind: Stem, channels: int, width: int) -> nn.Sequential:
    kernel = int(kind[0])
    stride = 2 if "/2" in kind else 1
    layers = [nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=False), norm(width), nn.ReLU()]
    return nn.Sequential(*layers, *([nn.MaxPool2d(3, 2, 1)] if kind.endswith("pool") else []))


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = norm(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = norm(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), norm(outputs))

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(hidden)) + self.shortcut(x))


class ResNet18(Backbone):
    def __init__(self, channels: int, classes: int, width: int = 64, stem: Stem = "3x3") -> None:
        super().__init__()
        self.stem = make_stem(stem, channels, width)
        blocks, inputs = [], width
        for stage, stride in enumerate((1, 2, 2, 2)):
            outputs = width * 2**stage
            blocks += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.classifier = nn.Linear(inputs, classes)

    def trunk(self, first: Tensor) -> Features:
        last = self.blocks(first)
        return Features(last, last.mean((2, 3)))

    def head(self, features: Features) -> Tensor:
        return self.classifier(features.pooled)
