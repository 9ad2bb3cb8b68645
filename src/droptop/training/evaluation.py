"""Predict a test set and count right predictions, by group and class."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from droptop.errors import BadRequest
from droptop.groups import Groups
from droptop.learner import UNLEARNED, Learner
from droptop.results.metrics import Evaluation, Tally
from droptop.types import Source, check_source, groups_of, read

CHUNK = {"cpu": 250, "cuda": 1000, "mps": 250}  # samples per forward pass, if they are small
SMALL = 64 * 64  # pixels


def chunk(learner: Learner) -> int:
    """Return the number of samples per forward pass: fewer of larger images."""
    pixels = max(learner.spec.shape[1] * learner.spec.shape[2], SMALL)
    return max(CHUNK[learner.device.type] * SMALL // pixels, 1)


MAIN = ""  # the column of the groups that every evaluation counts by; others have names
SHORTCUT = ("follow", "contradict")  # its groups where it is known which samples' shortcut points to their class
ALL = ("all",)  # its only group elsewhere

_ON_HOST = WeakTensorKeyDictionary()  # copies of labels and groups that lie on a device, with their versions


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
    """Return the predictions for a test set's samples of classes seen so far, on the host."""
    return predict_tests(learner, {"": test}, predict)[""]


def predict_tests(
    learner: Learner, tests: Mapping[str, Source], predict: Callable[[Tensor], Tensor] | None = None
) -> dict[str, Predictions]:
    """Return the predictions for the samples of classes seen so far of every test set, on the host.

    On a GPU all passes have the same size, as the CUDA graph behind `predict` needs: test sets share them, and the last
    one is filled up. Nothing is read from the device but what it predicts.
    """
    device, size, seen = learner.device, chunk(learner), learner.seen.cpu()
    fills = device.type == "cuda" and learner.independent
    rows = {name: seen[on_host(test.y)].nonzero()[:, 0] for name, test in tests.items()}
    places = {name: rows[name].to(test.y.device) for name, test in tests.items()}  # before the device has much to do
    counts = {name: len(of_test) for name, of_test in rows.items()}
    predicted, follows = [torch.zeros(0, dtype=torch.int64, device=device)], {name: list[Tensor]() for name in tests}
    for parts in passes(counts, size, fills):
        samples = [read(tests[name], places[name][part]) for name, part in parts]
        for (name, _), some in zip(parts, samples):
            learner.check_images(some.x)  # where it is: on a GPU nobody looks at its values
            follows[name] += [] if some.follows is None else [some.follows]
        x = torch.cat([some.x.to(device) for some in samples])
        count = len(x)
        if fills and count < size:
            x = torch.cat([x, x[-1:].expand(size - count, *x.shape[1:])])
        predicted.append((predict_classes(learner, x) if predict is None else predict(x))[:count])
    answers = torch.cat(predicted).cpu().split(list(counts.values()))
    return {
        name: Predictions(on_host(test.y)[rows[name]], answer, groups_at(test, rows[name], follows[name]))
        for (name, test), answer in zip(tests.items(), answers)
    }


def passes(counts: Mapping[str, int], size: int, shared: bool) -> list[list[tuple[str, slice]]]:
    """Return which samples of which test set go through the net together, at most `size`; of several if `shared`."""
    made, room = list[list[tuple[str, slice]]](), 0
    for name, count in counts.items():
        start = 0
        while start < count:
            if room == 0 or not (shared or start):
                made.append([])
                room = size
            stop = min(count, start + room)
            made[-1].append((name, slice(start, stop)))
            room, start = room - (stop - start), stop
    return made


def groups_at(test: Source, rows: Tensor, follows: list[Tensor]) -> dict[str, Groups]:
    """Return the groups of some rows of a test set by column, on the host, first `MAIN`."""
    by_shortcut = Groups(SHORTCUT, (~torch.cat(follows)).long().cpu()) if follows else None
    main = Groups(ALL, torch.zeros_like(rows)) if by_shortcut is None else by_shortcut
    return {MAIN: main} | {name: of.at(on_host(of.codes)[rows]) for name, of in groups_of(test).items()}


def on_host(tensor: Tensor) -> Tensor:
    """Return a tensor on the host, copied once as long as nobody writes to it."""
    if tensor.device.type == "cpu" or tensor.is_inference():
        return tensor.cpu()
    version, copied = _ON_HOST.get(tensor, (-1, tensor))
    if version != tensor._version:
        copied = tensor.cpu()
        _ON_HOST[tensor] = tensor._version, copied
    return copied


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
