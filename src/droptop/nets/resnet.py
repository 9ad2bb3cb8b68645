"""ResNet-18 in any width, as stem -> trunk -> head (He et al., 2016).

The stem decides how fine the first map is, and so how small a cell the debiasing layer can drop:

    stem          first map at 32 px    last map    used for
    3x3           32 x 32               4 x 4       CIFAR
    3x3/2         16 x 16               2 x 2       small images on a CPU
    7x7/2         16 x 16               2 x 2       the built-in streams
    7x7/2-pool     8 x 8                1 x 1       64 px and up (at 32 px a 1 x 1 last map leaves nothing to fuse)
"""

from typing import Any, Literal

from torch import Tensor, nn
from torch.nn.functional import conv2d

from droptop.nets.backbone import Backbone, Features
from droptop.nets.norm import Norm

Stem = Literal["3x3", "3x3/2", "7x7/2", "7x7/2-pool"]


class Downsample(nn.Conv2d):
    """A 1 x 1 convolution that skips pixels.

    On a CPU, oneDNN (3.12) writes past its memory in the backward pass of a narrow one whose channels are last
    (uxlfoundation/oneDNN issue 6035): processes die. There the pixels are skipped first, which gives the same numbers
    up to rounding. Maps of 8 channels and more, and of less than 32 x 32 cells, keep the bits of earlier runs: nothing
    was found wrong with these.
    """

    def forward(self, x: Tensor) -> Tensor:
        _, channels, height, width = x.shape
        if x.device.type == "cpu" and (channels < 8 or (channels < 16 and height * width >= 32 * 32)):
            down, across = self.stride
            return conv2d(x[:, :, ::down, ::across], self.weight)
        return super().forward(x)


class Block(nn.Module):
    """Two 3 x 3 convolutions with a shortcut around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = Norm(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = Norm(outputs)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(Downsample(inputs, outputs, 1, stride, bias=False), Norm(outputs))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.bn1.relu(self.conv1(x))
        return self.bn2.relu(self.conv2(hidden), add=self.downsample(x))


class ResNet18(Backbone):
    """ResNet-18 with torchvision's and timm's names for its parameters."""

    def __init__(self, channels: int, classes: int, width: int = 64, stem: Stem = "3x3") -> None:
        super().__init__()
        kernel, stride = int(stem[0]), 2 if "/2" in stem else 1
        self.conv1 = nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=False)
        self.bn1 = Norm(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if stem.endswith("pool") else nn.Identity()
        self.layer1 = nn.Sequential(Block(width, width, 1), Block(width, width, 1))
        self.layer2 = nn.Sequential(Block(width, 2 * width, 2), Block(2 * width, 2 * width, 1))
        self.layer3 = nn.Sequential(Block(2 * width, 4 * width, 2), Block(4 * width, 4 * width, 1))
        self.layer4 = nn.Sequential(Block(4 * width, 8 * width, 2), Block(8 * width, 8 * width, 1))
        self.fc = nn.Linear(8 * width, classes)

    def stem(self, x: Tensor) -> Tensor:
        return self.maxpool(self.bn1.relu(self.conv1(x)))

    def trunk(self, first: Tensor, *given: Any) -> Features:
        last = self.layer4(self.layer3(self.layer2(self.layer1(first))))
        return Features(last, last.mean((2, 3)))

    def head(self, features: Features) -> Tensor:
        return self.fc(features.pooled)
