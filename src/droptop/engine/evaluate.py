"""How much of a test set a learner gets right, counted."""

from collections.abc import Sequence

import torch
from torch import Tensor

from droptop.learner import Learner
from droptop.results.metrics import Evaluation, Tally
from droptop.streams import Source

CHUNK = {"cpu": 250, "cuda": 1000}  # samples a forward pass


def evaluate(learner: Learner, test: Source) -> Evaluation:
    """Right answers on the classes seen so far, by group and class."""
    device = learner.device
    rows = learner.seen[test.y.to(device)].nonzero()[:, 0].to(test.y.device)
    correct, follows = [torch.zeros(0, dtype=torch.bool, device=device)], []
    for part in rows.split(CHUNK[device.type]) if len(rows) else ():
        samples = test[part]
        correct.append(learner.predict(samples.x).argmax(1) == samples.y.to(device))
        follows.append(None if samples.follows is None else samples.follows.cpu())
    return tallies(test.y[rows].cpu(), torch.cat(correct).cpu(), follows, len(learner.spec.classes))


def tallies(labels: Tensor, correct: Tensor, follows: Sequence[Tensor | None], classes: int) -> Evaluation:
    """Right answers counted, apart for those whose shortcut points to their class where that is known."""
    known = [part for part in follows if part is not None]
    if not known:
        return {"all": _tally(labels, correct, classes)}
    follow = torch.cat(known)
    return {name: _tally(labels[chosen], correct[chosen], classes)
            for name, chosen in (("follow", follow), ("contradict", ~follow))}


def _tally(labels: Tensor, correct: Tensor, classes: int) -> Tally:
    return {"n": torch.bincount(labels, minlength=classes).tolist(),
            "correct": torch.bincount(labels[correct], minlength=classes).tolist()}
