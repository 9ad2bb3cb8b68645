"""SCR (Mai et al., 2021): every view is drawn to the other views of its class; the nearest mean of the memory predicts.

loss = mean over views i of  - mean over p of log( exp(z_i z_p / t) / sum over j other than i of exp(z_i z_j / t) )
"""

import math

import pytest
import torch
from torch import Tensor

from .slow import CLASSES, Row, agree, batches, fast, mean
from .slow_nets import SlowNet
from .slow_views import SlowInner, SlowViews, cosine, linear, unit


class SlowProjected(SlowInner):
    def head(self, pooled: Tensor) -> Tensor:
        return linear(self, "project.2", linear(self, "project.0", pooled).relu())


class SlowSCR(SlowViews):
    def slow_net(self, model: torch.nn.Module) -> SlowNet:
        return SlowProjected(model)

    def loss(self, logits: Tensor, arrived: list[Row], replayed: list[Row]) -> Tensor:
        rows, t = arrived + replayed, self.config.temperature
        there, losses = self.counting(rows), []
        for i in there:
            likeness = {j: (unit(logits[i]) @ unit(logits[j]) / t).exp() for j in there if j != i}
            same = [j for j in likeness if rows[j]["y"] == rows[i]["y"]]
            losses.append(-mean([(likeness[p] / sum(likeness.values())).log() for p in same]))
        return mean(losses)

    def features(self, net: SlowNet, rows: list[Row]) -> list[Tensor]:
        with torch.no_grad():
            images = torch.stack([self.normalise(row["x"]) for row in rows])
            return list(net.trunk(net.stem(images, "running"), "running")[1])

    def classify(self, net: SlowNet, rows: list[Row]) -> Tensor:
        kept, logits = [row["y"] for row in self.memory], torch.full((len(rows), CLASSES), -1.0)
        held, asked = self.features(net, self.memory), self.features(net, rows)
        for label in set(kept):
            nearest = sum(unit(held[slot]) for slot in range(len(kept)) if kept[slot] == label) / kept.count(label)
            for place, feature in enumerate(asked):
                logits[place, label] = cosine(feature, nearest)
        return logits / self.config.temperature


SMALL = {"projection": 5, "jitter": 0.0, "augment": "crop-flip"}
SETTINGS = {
    "default": {},
    "temperature": {"temperature": 0.5, "momentum": 0.5},
    "separate": {"replay_forward": "separate", "average": True},
    "iterations": {"iterations": 2},
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_scr(settings):
    learner = fast("scr", **SMALL | SETTINGS[settings])
    agree(learner, SlowSCR(learner), batches(6))


def test_scr_with_droptop():
    """The probe's losses are those of the nearest means after the step."""
    learner = fast("scr", {}, **SMALL | {"augment": "none"})
    slow = SlowSCR(learner)
    agree(learner, slow, batches(6))
    assert sum(slow.droptop.decisions.values()) > 0


def test_a_class_that_the_memory_lost_is_named_last():
    learner = fast("scr", **SMALL)
    for batch in batches(4):
        learner.observe(*batch)
    learner.memory.rows["y"][learner.memory.rows["y"] == 0] = 1
    learner.settled = False
    logits = learner.predict(batches(1)[0][0])
    assert (logits[:, 0] == -1 / 0.07).all()
    assert not math.isnan(logits.sum())
