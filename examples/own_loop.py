"""A plain replay loop in PyTorch, debiased by the three lines that say `layer`.

    python examples/own_loop.py

The stream is a part of a built-in one, which takes seconds; any other batches will do.
"""

import torch
import torch.nn.functional as F
from torch import nn

import droptop

stream = droptop.make_stream("fashion-sticker", limit=200)
stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
body = nn.Sequential(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU())
model = nn.Sequential(stem, body, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10))
layer = droptop.attach(model, first="0", last="1", classes=10, gamma=5.0)  # the stem and the body, by their names
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
memory = [torch.zeros(0, *stream.spec.shape), torch.zeros(0, dtype=torch.int64), torch.zeros(0)]

for x, y, *_ in stream:
    arrived = [x / 255, y, torch.rand(len(y))]
    chosen = torch.randperm(len(memory[1]))[:32]
    images, labels, _ = (torch.cat([new, old[chosen]]) for new, old in zip(arrived, memory))
    with layer.labels(labels):
        loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    memory = [torch.cat([old, new]) for old, new in zip(memory, arrived)]
    memory = [column[memory[2].argsort()[-200:]] for column in memory]  # the largest numbers: a fair draw of all so far
    layer.adjust(memory[0], memory[1])

for name, test in stream.tests.items():
    print(f"{name}: {(model.eval()(test.x / 255).argmax(1) == test.y).float().mean():.1%}")
