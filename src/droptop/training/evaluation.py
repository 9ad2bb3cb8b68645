"""Predict a test set and count right predictions, by group and class."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from droptop.learner import Learner
from droptop.results.metrics import Evaluation, Tally
from droptop.types import Source, check_source, read

CHUNK = {"cpu": 250, "cuda": 1000}  # samples per forward pass, if they are small
SMALL = 64 * 64  # pixels


def chunk(learner: Learner) -> int:
    """Return the number of samples per forward pass: fewer of larger images."""
    pixels = max(learner.spec.shape[1] * learner.spec.shape[2], SMALL)
    return max(CHUNK[learner.device.type] * SMALL // pixels, 1)


class Predictions(NamedTuple):
    """Hold the predicted classes of a test set's samples, those of classes seen so far."""

    labels: Tensor
    predicted: Tensor
    follows: Tensor | None  # whether each sample's shortcut points to its class; None where unknown


def evaluate(learner: Learner, test: Source) -> Evaluation:
    """Count right predictions on the classes seen so far, by group and class.

    Args:
        learner: The learner to evaluate; it is not changed.
        test: The test set.

    Returns:
        By group ("all"; or "follow" and "contradict" where it is known whether a sample's shortcut points to its
        class), the number of samples and of right predictions per class. `droptop.accuracy` makes a percentage of it.

    Raises:
        BadRequest: If the test set has no labels, or labels or images that do not fit the learner.
    """
    check_source(learner.spec, test, "a test set")
    return count_correct(predict_test(learner, test), len(learner.spec.classes))


def predict_classes(learner: Learner, x: Tensor) -> Tensor:
    """Return the class that each image is taken for."""
    return learner.predict(x).argmax(1)


def predict_test(learner: Learner, test: Source, predict: Callable[[Tensor], Tensor] | None = None) -> Predictions:
    """Return the predictions for a test set's samples of classes seen so far, on the host.

    On a GPU all passes have the same size, as the CUDA graph behind `predict` needs: the last one is filled up.
    """
    device, size = learner.device, chunk(learner)
    fills = device.type == "cuda" and learner.independent
    rows = learner.seen[test.y.to(device)].nonzero()[:, 0].to(test.y.device)
    predicted, follows = [torch.zeros(0, dtype=torch.int64, device=device)], []
    for part in rows.split(size) if len(rows) else ():
        samples = read(test, part)
        learner.check_images(samples.x)  # where it is: on a GPU nobody looks at its values
        x = samples.x.to(device)
        if fills and len(part) < size:
            x = torch.cat([x, x[-1:].expand(size - len(part), *x.shape[1:])])
        predicted.append((predict_classes(learner, x) if predict is None else predict(x))[: len(part)])
        follows += [] if samples.follows is None else [samples.follows.cpu()]
    return Predictions(test.y[rows].cpu(), torch.cat(predicted).cpu(), torch.cat(follows) if follows else None)


def count_correct(predictions: Predictions, classes: int) -> Evaluation:
    """Count right answers by class; separately for samples that follow and that contradict a known shortcut."""
    labels, correct, follow = predictions.labels, predictions.predicted == predictions.labels, predictions.follows
    if follow is None:
        return {"all": _tally(labels, correct, classes)}
    return {
        name: _tally(labels[chosen], correct[chosen], classes)
        for name, chosen in (("follow", follow), ("contradict", ~follow))
    }


def confusion(predictions: Predictions, classes: int) -> Tensor:
    """Return a matrix of counts: true class x predicted class."""
    pairs = predictions.labels * classes + predictions.predicted
    return torch.bincount(pairs, minlength=classes * classes).view(classes, classes).to(torch.int32)


def _tally(labels: Tensor, correct: Tensor, classes: int) -> Tally:
    """Return the number of samples and of right answers per class."""
    return {
        "n": torch.bincount(labels, minlength=classes).tolist(),
        "correct": torch.bincount(labels[correct], minlength=classes).tolist(),
    }
