"""MKD (Michel et al., 2024): second views are learned; both views keep to the answers of an average of past weights.

loss = CE(second views) + weight * mean over views v of  t^2 KL( softmax(T(second view) / t) || softmax(S(v) / t) )
"""

import pytest
import torch
from torch import Tensor

from .slow import CLASSES, Row, agree, batches, close, cross_entropy, fast, mean
from .slow_nets import SlowNet, SlowTinyNet
from .slow_views import SlowViews, views


class SlowMKD(SlowViews):
    def __init__(self, learner):
        super().__init__(learner)
        self.teachers = [{name: w.detach().clone() for name, w in net.weights.items()} for net in self.nets]

    def slow_net(self, model: torch.nn.Module) -> SlowNet:
        return SlowTinyNet(model)

    def objective(self, net: SlowNet, logits: Tensor, arrived: list[Row], replayed: list[Row]) -> Tensor:
        rows, t = arrived + replayed, self.config.temperature
        firsts, seconds = views(range(len(rows)), arrived)
        images = torch.stack([self.normalise(rows[place]["x"]) for place in seconds])
        with torch.no_grad():
            answers = net.with_weights(self.teachers[self.nets.index(net)]).logits(images, "batch")
        apart = []
        for places in (firsts, seconds):
            for answer, place in zip(answers, places):
                p, q = (answer / t).softmax(0), (logits[place] / t).softmax(0)
                apart.append(t**2 * sum(p[c] * (p[c].log() - q[c].log()) for c in range(CLASSES)))
        learned = [cross_entropy(logits[place], rows[place]["y"]) for place in seconds]
        return mean(learned) + self.config.distill_weight * mean(apart)

    def average(self) -> None:
        super().average()
        share = max(9 / (10 + self.steps), 1 - self.config.teacher_decay)
        for net, teacher in zip(self.nets, self.teachers):
            for name, weight in net.weights.items():
                teacher[name] = (1 - share) * teacher[name] + share * weight.detach()

    def predict(self, x: Tensor) -> Tensor:
        kept, net, teacher = self.nets[0], self.nets[0], self.teachers[0]
        if self.config.predict_by == "both":
            net = net.with_weights({name: (net[name].detach() + teacher[name]) / 2 for name in teacher})
        elif self.config.predict_by == "teacher":
            net = net.with_weights(teacher)
        if not self.config.average:
            self.nets[0] = net
        logits = super().predict(x)
        self.nets[0] = kept
        return logits


SMALL = {"jitter": 0.0, "augment": "crop-flip"}
SETTINGS = {
    "default": {},
    "teacher": {"predict_by": "teacher", "teacher_decay": 0.5, "temperature": 1.5},
    "student": {"predict_by": "student", "distill_weight": 0.5, "replay_forward": "separate"},
    "average": {"average": True, "iterations": 2},
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_mkd(settings):
    learner = fast("mkd", **SMALL | SETTINGS[settings])
    slow = SlowMKD(learner)
    agree(learner, slow, batches(6))
    close(dict(learner.teachers[0].averages), slow.teachers[0])


@pytest.mark.parametrize("debias", [{}, {"reference": True}])
def test_mkd_with_droptop(debias):
    """The teachers see what is not dropped; of two nets each has its own."""
    learner = fast("mkd", debias, **SMALL | {"augment": "none"})
    slow = SlowMKD(learner)
    agree(learner, slow, batches(6))
    for teacher, expected in zip(learner.teachers, slow.teachers, strict=True):
        close(dict(teacher.averages), expected)
