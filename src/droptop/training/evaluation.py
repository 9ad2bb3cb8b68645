"""Predict a test set and count right predictions, by group and class."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from droptop.errors import BadRequest
from droptop.groups import Groups
from droptop.learner import UNLEARNED, Learner
from droptop.results.metrics import Evaluation, Tally
from droptop.types import Source, check_source, groups_of, read

CHUNK = {"cpu": 250, "cuda": 1000}  # samples per forward pass, if they are small
SMALL = 64 * 64  # pixels


def chunk(learner: Learner) -> int:
    """Return the number of samples per forward pass: fewer of larger images."""
    pixels = max(learner.spec.shape[1] * learner.spec.shape[2], SMALL)
    return max(CHUNK[learner.device.type] * SMALL // pixels, 1)


MAIN = ""  # the column of the groups that every evaluation counts by; others have names
SHORTCUT = ("follow", "contradict")  # its groups where it is known which samples' shortcut points to their class
ALL = ("all",)  # its only group elsewhere


class Predictions(NamedTuple):
    """Hold the predicted classes of a test set's samples, those of classes seen so far."""

    labels: Tensor
    predicted: Tensor
    groups: dict[str, Groups]  # by column, first `MAIN`


def evaluate(learner: Learner, test: Source, by: str | None = None) -> Evaluation:
    """Count right predictions on the classes seen so far, by group and class.

    Args:
        learner: The learner to evaluate; it is not changed.
        test: The test set.
        by: A column of the test set's groups, to count by these groups; None for those named below.

    Returns:
        By group ("all"; or "follow" and "contradict" where it is known whether a sample's shortcut points to its
        class), the number of samples and of right predictions per class. `droptop.accuracy` makes a percentage of it.

    Raises:
        BadRequest: If the test set has no labels, or labels or images that do not fit the learner, or no such groups.
    """
    check_source(learner.spec, test, "a test set")
    columns = groups_of(test)
    if by is not None and by not in columns:
        raise BadRequest(f"by takes a column of groups, {', '.join(columns) or 'of which there is none'}; not {by!r}")
    if not learner.seen.any():
        warnings.warn(f"{UNLEARNED}: nothing is counted, and an accuracy is NaN", stacklevel=2)
    counts = count_correct(predict_test(learner, test), len(learner.spec.classes))
    return counts[MAIN if by is None else by]


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
    predicted, follows = [torch.zeros(0, dtype=torch.int64, device=device)], list[Tensor]()
    for part in rows.split(size) if len(rows) else ():
        samples = read(test, part)
        learner.check_images(samples.x)  # where it is: on a GPU nobody looks at its values
        x = samples.x.to(device)
        if fills and len(part) < size:
            x = torch.cat([x, x[-1:].expand(size - len(part), *x.shape[1:])])
        predicted.append((predict_classes(learner, x) if predict is None else predict(x))[: len(part)])
        follows += [] if samples.follows is None else [samples.follows.cpu()]
    main = Groups(SHORTCUT, (~torch.cat(follows)).long()) if follows else Groups(ALL, torch.zeros_like(rows).cpu())
    groups = {name: of.at(of.codes[rows].cpu()) for name, of in groups_of(test).items()}
    return Predictions(test.y[rows].cpu(), torch.cat(predicted).cpu(), {MAIN: main} | groups)


def count_correct(predictions: Predictions, classes: int) -> dict[str, Evaluation]:
    """Count right answers by group and class, for every column of groups."""
    labels, correct = predictions.labels, predictions.predicted == predictions.labels
    return {
        column: {
            name: _tally(labels[groups.codes == code], correct[groups.codes == code], classes)
            for code, name in enumerate(groups.names)
        }
        for column, groups in predictions.groups.items()
    }


def evaluation_lines(by_test: Mapping[str, Predictions], classes: int) -> dict[str, Any]:
    """Return what a line of metrics.jsonl has of an evaluation: counts by test set and, where there are groups, theirs.

    `eval` has the counts of `MAIN`, by test set; `groups` has, by test set and column, those of the other groups.
    """
    counts = {name: count_correct(predictions, classes) for name, predictions in by_test.items()}
    line = {"eval": {name: columns.pop(MAIN) for name, columns in counts.items()}}
    grouped = {name: columns for name, columns in counts.items() if columns}
    return line | ({"groups": grouped} if grouped else {})


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
