"""How much of a test set a learner gets right, counted."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from droptop.errors import BadRequest
from droptop.learner import Learner
from droptop.results.metrics import Evaluation, Tally
from droptop.types import Source

CHUNK = {"cpu": 250, "cuda": 1000}  # samples a forward pass, if they are small
SMALL = 64 * 64  # pixels


def chunk(learner: Learner) -> int:
    """Samples a forward pass."""
    pixels = max(learner.spec.shape[1] * learner.spec.shape[2], SMALL)
    return max(CHUNK[learner.device.type] * SMALL // pixels, 1)


class Answers(NamedTuple):
    """What was predicted of a test set's samples of classes seen so far."""

    labels: Tensor
    predicted: Tensor
    follows: Tensor | None  # does the sample's shortcut point to its class?


def evaluate(learner: Learner, test: Source) -> Evaluation:
    """Right answers on the classes seen so far, by group and class."""
    check_test(learner, test)
    return tallies(ask(learner, test), len(learner.spec.classes))


def check_test(learner: Learner, test: Source, name: str = "a test set") -> None:
    """Refuses what this learner cannot be asked about."""
    if not isinstance(getattr(test, "y", None), Tensor):
        raise BadRequest(f"{name} must be Samples of images and labels, not a {type(test).__name__}")
    last = len(learner.spec.classes) - 1
    if len(test) and not 0 <= test.y.min() <= test.y.max() <= last:
        raise BadRequest(f"{name} must have labels from 0 to {last}, not {test.y.min()} to {test.y.max()}")


def guess(learner: Learner, x: Tensor) -> Tensor:
    """The class that each image is taken for."""
    return learner.predict(x).argmax(1)


def ask(learner: Learner, test: Source, predict: Callable[[Tensor], Tensor] | None = None) -> Answers:
    """Predictions among the classes seen so far, on the host. On a GPU all passes have the same size, which `predict`
    may count on: the last one is filled up."""
    device, size = learner.device, chunk(learner)
    fills = device.type == "cuda" and learner.independent
    rows = learner.seen[test.y.to(device)].nonzero()[:, 0].to(test.y.device)
    predicted, follows = [torch.zeros(0, dtype=torch.int64, device=device)], []
    for part in rows.split(size) if len(rows) else ():
        samples = test[part]
        x = samples.x.to(device)
        if fills and len(part) < size:
            x = torch.cat([x, x[-1:].expand(size - len(part), *x.shape[1:])])
        predicted.append((guess(learner, x) if predict is None else predict(x))[: len(part)])
        follows += [] if samples.follows is None else [samples.follows.cpu()]
    return Answers(test.y[rows].cpu(), torch.cat(predicted).cpu(), torch.cat(follows) if follows else None)


def tallies(answers: Answers, classes: int) -> Evaluation:
    """Right answers counted, apart for those whose shortcut points to their class where that is known."""
    labels, correct, follow = answers.labels, answers.predicted == answers.labels, answers.follows
    if follow is None:
        return {"all": _tally(labels, correct, classes)}
    return {
        name: _tally(labels[chosen], correct[chosen], classes)
        for name, chosen in (("follow", follow), ("contradict", ~follow))
    }


def confusion(answers: Answers, classes: int) -> Tensor:
    """Counts of true x predicted class."""
    pairs = answers.labels * classes + answers.predicted
    return torch.bincount(pairs, minlength=classes * classes).view(classes, classes).to(torch.int32)


def _tally(labels: Tensor, correct: Tensor, classes: int) -> Tally:
    return {
        "n": torch.bincount(labels, minlength=classes).tolist(),
        "correct": torch.bincount(labels[correct], minlength=classes).tolist(),
    }
