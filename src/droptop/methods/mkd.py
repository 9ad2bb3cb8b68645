"""MKD: momentum knowledge distillation (Michel et al., 2024). ER that also keeps to an average of its own past weights.

    loss = CE(second views) + weight * mean over views v of  t^2 KL( softmax(T(second view) / t) || softmax(S(v) / t) )

S is the net in training, T the teacher: the average of its weights, of which each step keeps `teacher_decay`. The
teacher sees second views alone, by statistics of the batch, without gradient and unmasked; the net sees both views. The
mean of the weights of both predicts (`--predict-by`), unless averaged weights do (`--average`).

The paper's teacher begins near zero, as its average is not corrected for its first steps; ours begins as `--average`
does, with the mean of the latest steps (`average.py`), and moves once per step, also with several iterations.
The authors' code takes Adam, and 10 stream and 64 memory samples per step (`--batch 10 --memory-batch 64`).

With DropTop the teacher hands on what an undropped view shows it: distillation works against what dropping unlearns.

Cost of a step: twice ER's for two views, and a forward of half as many rows.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from droptop.average import Average
from droptop.errors import require
from droptop.learner import Joined
from droptop.methods.views import TwoViews, ViewsConfig, views_of
from droptop.nets import Backbone, untracked


@dataclass(frozen=True)
class MKDConfig(ViewsConfig):
    """Hold the settings of MKD."""

    teacher_decay: float = 0.99
    """Share of the teacher that is kept at each step; less at first, when it spans the latest ninth of the steps."""
    distill_weight: float = 5.5
    """Weight in the loss of the distance from the teacher."""
    temperature: float = 4.0
    """Temperature at which answers are compared with the teacher's."""
    predict_by: Literal["both", "student", "teacher"] = "both"
    """Weights that predict: the mean of the net's and the teacher's (both), or those of one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.teacher_decay < 1, "teacher_decay", "a number from 0 and below 1", self.teacher_decay)
        require(0 <= self.distill_weight < float("inf"), "distill_weight", "a number from 0", self.distill_weight)
        require(0 < self.temperature < float("inf"), "temperature", "a number above 0", self.temperature)


class MKD(TwoViews):
    """Two views, of which one is learned and both are distilled from an averaged teacher."""

    config: MKDConfig
    config_type = MKDConfig

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.teachers = [Average(model, self.config.teacher_decay) for model in self.replicas]
        self.halfway = Average(self.model, 0.0)  # it holds the mean of net and teacher: `refresh`
        self.taught: dict[int, Tensor] = {}  # the teachers' answers to the batch of this iteration

    @property
    def averages(self) -> dict[str, Average]:
        return super().averages | dict(zip(("teacher", "teacher-twin"), self.teachers))

    def forward(self, model: Backbone, images: Tensor, batch: Joined, direction: int) -> Tensor:
        """Run the forward pass, after that of the teacher."""
        teacher, (_, seconds) = self.teachers[direction].model, views_of(images, batch.stream)
        with torch.no_grad(), untracked(teacher):
            self.taught[direction] = self.logits(teacher, seconds, {})
        return super().forward(model, images, batch, direction)

    def loss(self, logits: Tensor, batch: Joined) -> Tensor:
        """Compute the cross-entropy of second views, of stream and memory alike."""
        answers, labels = (views_of(values, batch.stream)[1] for values in (logits, batch.y))
        return F.cross_entropy(answers, labels)

    def objective(self, model: Backbone, logits: Tensor, batch: Joined) -> Tensor:
        """Add the distance from the teacher's answers."""
        answers = F.softmax(self.taught[self.replicas.index(model)] / self.config.temperature, dim=1)
        logs = [F.log_softmax(view / self.config.temperature, dim=1) for view in views_of(logits, batch.stream)]
        distance = sum(F.kl_div(view, answers, reduction="batchmean") for view in logs) / len(logs)
        scale = self.config.distill_weight * self.config.temperature**2
        return super().objective(model, logits, batch) + scale * distance

    @property
    def every_model(self) -> list[Backbone]:
        return [*super().every_model, self.halfway.model]

    @property
    def predictor(self) -> Backbone:
        by = self.config.predict_by
        if self.average is not None or by == "student":
            return super().predictor
        return (self.halfway if by == "both" else self.teachers[0]).model

    @torch.no_grad()
    def refresh(self) -> None:
        """Compute the mean of the net's and the teacher's weights."""
        student, teacher = self.halfway.weights, self.teachers[0].averages
        for name, weight in self.halfway.averages.items():
            weight.copy_(torch.lerp(student[name], teacher[name], 0.5))
