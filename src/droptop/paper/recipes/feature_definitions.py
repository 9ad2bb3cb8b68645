"""Shortcut features as the paper's section 3 defines them, for a learner in the middle of its stream.

A feature f_i is a unit of the vector that the head sees. The head weighs features and adds them up, so w_ki f_i(x) is
what feature i contributes to class k.

    definition 1   a shortcut is active on seen data, E|f_i| >= rho, and on unseen data too, E|f_i| >= epsilon
    definition 2   a non-shortcut is active on seen data and not on unseen data
    Eq. 3          shortcuts are more active on seen data than non-shortcuts
    property 2     on images of earlier tasks, shortcuts contribute most to a class of the current one

Nets differ in scale, so thresholds are in units of the mean feature's activation on seen data: with rho = 1, the
active features are those that are at least as active as the mean one.

Legend: N images, D features, K classes seen.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.floating[Any]]
Chosen = NDArray[np.bool_]


@dataclass(frozen=True)
class Head:
    """Hold the last layer's weights of the classes seen."""

    weight: Numbers  # K, D
    bias: Numbers  # K


@dataclass(frozen=True)
class FeatureStatistics:
    """Hold what is measured of every feature (D each); thresholds then tell which ones are shortcuts."""

    seen: Numbers  # E|f_i| on seen data
    unseen: Numbers  # and on unseen data
    votes: Numbers  # share of the earlier tasks' images on which it contributes most to the current task; see `votes`
    pull: Numbers  # what it adds to the lead of a wrong class of the current task, mean over the mistaken images
    bias: float  # what the head's bias adds to that lead
    mistaken: float  # share of the earlier tasks' images that are classified as a class of the current one
    response: Numbers | None = None  # E|f_i(x) - f_i(x without its shortcut)|; None if it cannot be removed


def activation(features_ND: Numbers) -> Numbers:
    """Return E|f_i| of every feature."""
    return np.abs(features_ND).mean(0)


def votes(features_ND: Numbers, head: Head, current_K: Chosen) -> Numbers:
    """Return for each feature the share of images on which it contributes most to a class of the current task.

    Images on which the feature is 0 do not count; where it is 0 on all of them, its share is NaN.
    """
    nonzero = features_ND != 0
    favoured = np.where(features_ND > 0, head.weight.argmax(0), head.weight.argmin(0))
    with np.errstate(invalid="ignore"):
        return (current_K[favoured] & nonzero).sum(0) / nonzero.sum(0)


def pulls(features_ND: Numbers, head: Head, labels_N: NDArray[np.int64], rival_N: NDArray[np.int64]) -> Numbers:
    """Return what each feature adds to the lead of a rival class over an image's class (N, D).

    The sum over features, with the bias, is the whole lead.
    """
    return (head.weight[rival_N] - head.weight[labels_N]) * features_ND


def feature_statistics(
    seen_ND: Numbers,
    labels_N: NDArray[np.int64],
    unseen_MD: Numbers,
    head: Head,
    current_K: Chosen,
    without_ND: Numbers | None = None,
) -> FeatureStatistics:
    """Return the statistics of every feature, given the features of seen images and of images of unseen classes.

    Labels are places among the K classes; `without_ND` are the features of the seen images without their shortcut.
    """
    earlier = ~current_K[labels_N]
    features, labels = seen_ND[earlier], labels_N[earlier]
    predictions = (features @ head.weight.T + head.bias).argmax(1)
    wrong = current_K[predictions]
    mistaken, true, predicted = features[wrong], labels[wrong], predictions[wrong]
    count = max(len(mistaken), 1)
    return FeatureStatistics(
        activation(seen_ND),
        activation(unseen_MD),
        votes(features, head, current_K),
        pulls(mistaken, head, true, predicted).sum(0) / count,
        float((head.bias[predicted] - head.bias[true]).sum() / count),
        float(wrong.mean()),
        None if without_ND is None else activation(seen_ND - without_ND),
    )


def kinds(statistics: FeatureStatistics, rho: float, epsilon: float) -> tuple[Chosen, Chosen]:
    """Return which features are shortcuts, and which non-shortcuts (definitions 1 and 2)."""
    unit = statistics.seen.mean()
    active, active_on_unseen = statistics.seen >= rho * unit, statistics.unseen >= epsilon * unit
    return active & active_on_unseen, active & ~active_on_unseen


def figures(statistics: FeatureStatistics, rho: float, epsilon: float) -> dict[str, float | None]:
    """Return the figures of the definitions and properties at two thresholds; None where no feature is of that kind."""
    shortcut, other = kinds(statistics, rho, epsilon)
    active = shortcut | other
    lead = statistics.pull.sum() + statistics.bias
    values = {
        "active": 100 * active.mean(),  # percent of all features
        "shortcuts": 100 * ratio(shortcut.sum(), active.sum()),  # percent of the active ones
        "times as active": ratio(
            mean_over(statistics.seen, shortcut), mean_over(statistics.seen, other)
        ),  # Eq. 3: above 1
        "votes, shortcuts": 100 * mean_over(statistics.votes, shortcut),
        "votes, others": 100 * mean_over(statistics.votes, other),
        "lead, shortcuts": 100 * ratio(statistics.pull[shortcut].sum(), lead),  # percent of the wrong class's lead
        "lead, others": 100 * ratio(statistics.pull[other].sum(), lead),
        "mistaken": 100 * statistics.mistaken,
    }
    if statistics.response is not None:  # percent of the feature's activation that goes with the true shortcut
        with np.errstate(divide="ignore", invalid="ignore"):
            response = statistics.response / statistics.seen
        values["response, shortcuts"] = 100 * mean_over(response, shortcut)
        values["response, others"] = 100 * mean_over(response, other)
    return {name: float(value) if np.isfinite(value) else None for name, value in values.items()}


def mean_over(values_D: Numbers, chosen_D: Chosen) -> float:
    """Return the mean over the chosen features that have a value; NaN where none has."""
    values = values_D[chosen_D]
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def ratio(part: float, whole: float) -> float:
    """Return part / whole, NaN where the whole is 0."""
    return float(part / whole) if whole else float("nan")
