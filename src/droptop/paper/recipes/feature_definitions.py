"""Shortcut features as the paper's section 3 defines them, of a learner in the middle of its stream.

A feature f_i is a unit of the vector that the head sees. The head weighs features and adds them up, so that
w_ki f_i(x) is what feature i says for class k.

    definition 1   a shortcut is active on seen data, E|f_i| >= rho, and on unseen data too, E|f_i| >= epsilon
    definition 2   a non-shortcut is active on seen data and not on unseen data
    Eq. 3          shortcuts are more active on seen data than non-shortcuts
    property 2     on images of earlier tasks, shortcuts speak for classes of the current one

Nets differ in scale, so thresholds count in units of the mean feature's activation on seen data: with rho = 1, those
features are active that are at least as active as the mean one.

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
    """The last layer, of the classes seen."""

    weight: Numbers  # K, D
    bias: Numbers  # K


@dataclass(frozen=True)
class FeatureStatistics:
    """What is known of every feature (D each), of which thresholds make shortcuts or not."""

    seen: Numbers  # E|f_i| on seen data
    unseen: Numbers  # and on unseen data
    votes: Numbers  # share of the earlier tasks' images on which the feature, if not 0, speaks for the current task
    pull: Numbers  # what it adds to the lead of a wrong class of the current task, mean over images so mistaken
    bias: float  # what the head's bias adds to that lead
    mistaken: float  # share of the earlier tasks' images that are taken for a class of the current one
    response: Numbers | None = None  # E|f_i(x) - f_i(x without its shortcut)| where one can be taken away


def activation(features_ND: Numbers) -> Numbers:
    """E|f_i|."""
    return np.abs(features_ND).mean(0)


def votes(features_ND: Numbers, head: Head, current_K: Chosen) -> Numbers:
    """For each feature the share of images on which it says most for a class of the current task; NaN where it is 0 on
    all of them, and says nothing."""
    speaks = features_ND != 0
    most = np.where(features_ND > 0, head.weight.argmax(0), head.weight.argmin(0))
    with np.errstate(invalid="ignore"):
        return (current_K[most] & speaks).sum(0) / speaks.sum(0)


def pulls(features_ND: Numbers, head: Head, own_N: NDArray[np.int64], rival_N: NDArray[np.int64]) -> Numbers:
    """N, D: what each feature adds to the lead of a rival class over an image's own; with the bias, all of it."""
    return (head.weight[rival_N] - head.weight[own_N]) * features_ND


def feature_statistics(
    seen_ND: Numbers,
    labels_N: NDArray[np.int64],
    unseen_MD: Numbers,
    head: Head,
    current_K: Chosen,
    without_ND: Numbers | None = None,
) -> FeatureStatistics:
    """Every feature, from those of images seen (labels count within the K classes) and of images of unseen classes;
    `without_ND` are the seen images' without their shortcut."""
    earlier = ~current_K[labels_N]
    features, own = seen_ND[earlier], labels_N[earlier]
    answers = (features @ head.weight.T + head.bias).argmax(1)
    wrong = current_K[answers]
    mistaken, true, taken = features[wrong], own[wrong], answers[wrong]
    count = max(len(mistaken), 1)
    return FeatureStatistics(
        activation(seen_ND),
        activation(unseen_MD),
        votes(features, head, current_K),
        pulls(mistaken, head, true, taken).sum(0) / count,
        float((head.bias[taken] - head.bias[true]).sum() / count),
        float(wrong.mean()),
        None if without_ND is None else activation(seen_ND - without_ND),
    )


def kinds(statistics: FeatureStatistics, rho: float, epsilon: float) -> tuple[Chosen, Chosen]:
    """Which features are shortcuts, and which non-shortcuts (definitions 1 and 2)."""
    unit = statistics.seen.mean()
    active, elsewhere = statistics.seen >= rho * unit, statistics.unseen >= epsilon * unit
    return active & elsewhere, active & ~elsewhere


def figures(statistics: FeatureStatistics, rho: float, epsilon: float) -> dict[str, float | None]:
    """What the definitions and properties come to at two thresholds; None where there is no such feature."""
    shortcut, other = kinds(statistics, rho, epsilon)
    active = shortcut | other
    lead = statistics.pull.sum() + statistics.bias
    results = {
        "active": 100 * active.mean(),  # percent of all features
        "shortcuts": 100 * ratio(shortcut.sum(), active.sum()),  # percent of the active ones
        "times as active": ratio(of(statistics.seen, shortcut), of(statistics.seen, other)),  # Eq. 3: above 1
        "votes, shortcuts": 100 * of(statistics.votes, shortcut),
        "votes, others": 100 * of(statistics.votes, other),
        "lead, shortcuts": 100 * ratio(statistics.pull[shortcut].sum(), lead),  # percent of the wrong class's lead
        "lead, others": 100 * ratio(statistics.pull[other].sum(), lead),
        "mistaken": 100 * statistics.mistaken,
    }
    if statistics.response is not None:  # percent of the feature's activation that goes with the true shortcut
        with np.errstate(divide="ignore", invalid="ignore"):
            response = statistics.response / statistics.seen
        results |= {"response, shortcuts": 100 * of(response, shortcut), "response, others": 100 * of(response, other)}
    return {name: float(value) if np.isfinite(value) else None for name, value in results.items()}


def of(values_D: Numbers, chosen_D: Chosen) -> float:
    """Their mean over some features, of those that have one."""
    values = values_D[chosen_D]
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")
