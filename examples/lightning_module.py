"""A Lightning module that replays and debiases: `layer` is attached once, told the labels, and adjusted after a batch.

    pip install lightning
    python examples/lightning_module.py

The stream is a built-in one; any loader of images and labels will do.
"""

import lightning
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

import droptop


class DebiasedReplay(lightning.LightningModule):
    """Trains a model on its batches and a replay memory, with DropTop between two of the model's parts."""

    def __init__(self, model, first, last, shape, classes, memory=200, replayed=32, lr=0.1):
        super().__init__()
        self.model, self.size, self.replayed, self.lr = model, memory, replayed, lr
        self.layer = droptop.attach(model, first=first, last=last, classes=classes)
        self.memory = [torch.zeros(0, *shape), torch.zeros(0, dtype=torch.int64), torch.zeros(0)]

    def forward(self, x):
        return self.model(x)

    def training_step(self, batch, index):
        chosen = torch.randperm(len(self.memory[1]))[: self.replayed]
        x, y = (torch.cat([new, old[chosen].to(new)]) for new, old in zip(batch, self.memory))
        with self.layer.labels(y):
            return F.cross_entropy(self(x), y)

    def on_train_batch_end(self, outputs, batch, index):
        arrived = [*batch, torch.rand(len(batch[1]))]
        columns = [torch.cat([old, new.to(old)]) for old, new in zip(self.memory, arrived)]
        self.memory = [column[columns[2].argsort()[-self.size :]] for column in columns]  # a fair draw of all so far
        self.layer.adjust(self.memory[0], self.memory[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.lr)

    def on_save_checkpoint(self, checkpoint):
        checkpoint["droptop"] = {"layer": self.layer.state_dict(), "memory": self.memory}

    def on_load_checkpoint(self, checkpoint):
        self.layer.load_state_dict(checkpoint["droptop"]["layer"])
        self.memory = checkpoint["droptop"]["memory"]


def small_net():
    """Return a small convolutional net, whose parts "0" and "1" give the first and the last map."""
    stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
    body = nn.Sequential(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU())
    return nn.Sequential(stem, body, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10))


if __name__ == "__main__":
    stream = droptop.make_stream("fashion-sticker", limit=200)
    module = DebiasedReplay(small_net(), first="0", last="1", shape=stream.spec.shape, classes=10)
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    batches = [(x / 255, y) for x, y, *_ in stream]  # every image once, task after task
    trainer.fit(module, DataLoader(batches, batch_size=None))
    for name, test in stream.tests.items():
        print(f"{name}: {(module.eval()(test.x / 255).argmax(1) == test.y).float().mean():.1%}")
