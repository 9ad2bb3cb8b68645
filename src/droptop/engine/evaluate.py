"""How much of a test set a learner gets right, counted."""

import torch
from torch import Tensor

from droptop.learner import Learner
from droptop.results.metrics import Evaluation, Tally
from droptop.streams import Samples

CHUNK = 250


def evaluate(learner: Learner, test: Samples) -> Evaluation:
    """Right answers on the classes seen so far, by group and class."""
    rows = learner.seen.cpu()[test.y].nonzero()[:, 0]
    correct = torch.cat([learner.predict(test.x[part]).argmax(1).cpu() == test.y[part] for part in rows.split(CHUNK)])
    labels = test.y[rows]
    if test.follows is None:
        return {"all": _tally(labels, correct, len(learner.spec.classes))}
    follows = test.follows[rows]
    return {name: _tally(labels[chosen], correct[chosen], len(learner.spec.classes))
            for name, chosen in (("follow", follows), ("contradict", ~follows))}


def _tally(labels: Tensor, correct: Tensor, classes: int) -> Tally:
    return {"n": torch.bincount(labels, minlength=classes).tolist(),
            "correct": torch.bincount(labels[correct], minlength=classes).tolist()}
