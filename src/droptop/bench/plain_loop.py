"""ER as a plain loop, as most people first write it: what droptop's speed is measured against.

It has a DataLoader, transforms on PIL images one by one, eager modules, a memory on the host that is filled and drawn
from in Python, and a loss that is read at every step. Net, batches and memory rule are those of droptop's own ER.
"""

import random
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from PIL import Image, ImageOps
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from droptop.streams import Stream
from droptop.types import Spec


class Transform:
    """Turn a PIL image into a normalised tensor; with `augment`, pad by 4, crop, and mirror half of the time."""

    def __init__(self, spec: Spec, augment: bool) -> None:
        self.mean, self.std = (torch.tensor(value).view(-1, 1, 1) for value in (spec.mean, spec.std))
        self.augment = augment

    def __call__(self, image: Image.Image) -> Tensor:
        """Return the image as a tensor."""
        if self.augment:
            width, height = image.size
            left, top = random.randint(0, 8), random.randint(0, 8)
            image = ImageOps.expand(image, 4).crop((left, top, left + width, top + height))
            image = ImageOps.mirror(image) if random.random() < 0.5 else image
        pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
        x = pixels.view(image.size[1], image.size[0], 3).permute(2, 0, 1).float() / 255
        return (x - self.mean) / self.std


class Pictures(Dataset[tuple[Tensor, Tensor, int]]):
    """The first task of a stream as PIL images; an item is an augmented image, the raw image and the label."""

    def __init__(self, stream: Stream, transform: Transform) -> None:
        samples = stream.train[stream.order[0]]
        self.raw, self.labels, self.transform = samples.x, samples.y.tolist(), transform

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, int]:
        image = Image.fromarray(self.raw[index].permute(1, 2, 0).numpy())
        return self.transform(image), self.raw[index], self.labels[index]


def plain_er(
    model: nn.Module, stream: Stream, device: str, lr: float, memory: int, memory_batch: int, augment: bool
) -> Iterator[float]:
    """Train without end on the first task of a stream; yield the loss of every step."""
    model = model.to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr)
    transform = Transform(stream.spec, augment)
    loader = DataLoader(Pictures(stream, transform), stream.config.batch, shuffle=True, drop_last=True)
    replay_memory: list[tuple[Tensor, int]] = []
    seen = 0
    while True:
        for x, raw, y in loader:
            images, labels = x.to(device), y.to(device)
            if replay_memory:
                drawn = random.sample(replay_memory, min(memory_batch, len(replay_memory)))
                replayed = [transform(Image.fromarray(image.permute(1, 2, 0).numpy())) for image, _ in drawn]
                images = torch.cat([images, torch.stack(replayed).to(device)])
                labels = torch.cat([labels, torch.tensor([label for _, label in drawn]).to(device)])
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            for image, label in zip(raw, y.tolist()):
                place = len(replay_memory) if len(replay_memory) < memory else random.randint(0, seen)
                if place < memory:
                    replay_memory[place : place + 1] = [(image, label)]
                seen += 1
            yield loss.item()
