"""How much of a test set a learner gets right, counted."""

from collections.abc import Sequence

import torch
from torch import Tensor

from droptop.learner import Learner
from droptop.results.metrics import Evaluation, Tally
from droptop.streams import Source

CHUNK = 250


def evaluate(learner: Learner, test: Source) -> Evaluation:
    """Right answers on the classes seen so far, by group and class."""
    rows = learner.seen.cpu()[test.y].nonzero()[:, 0]
    correct, follows = [], []
    for part in rows.split(CHUNK):
        samples = test[part]
        correct.append(learner.predict(samples.x).argmax(1).cpu() == samples.y)
        follows.append(samples.follows)
    return tallies(test.y[rows], torch.cat(correct), follows, len(learner.spec.classes))


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
