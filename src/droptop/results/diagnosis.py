"""What a learner does before anything is debiased: has it learned at all, and does it lean on the shortcut?

    diagnosis = diagnose("none", summary)      # of the arm that others are compared with
    diagnosis["finding"], diagnosis["lost"]["removed"]["diff"]

Numbers to numbers; `report/sentences.py` puts them into words.
"""

from typing import Any, Literal, NotRequired, TypedDict, cast

from droptop.results.cue_sets import cue_of, sets_without_cue
from droptop.results.metrics import GAP, WORST, columns_of, worst_name
from droptop.results.statistics import FEWEST, SIGNIFICANT, Effect, estimate, holm, paired_effect

LITTLE = (
    5.0  # points; who loses at most so many, and at most a SHARE of what was learned, does not rely on the shortcut
)
SHARE = 0.1  # of the accuracy with the cue, above that of the better guess
BARELY = 0.1  # of the way from a blind guess to 100%; who came no further has barely learned

Finding = Literal[
    "barely learned",  # nothing else can be told of it
    "no set without the cue",  # none that is known to lack it: nobody can see what it leans on
    "too few seeds",
    "relies",
    "no reliance",
    "cannot tell",
]


class Accuracy(TypedDict):
    """Hold A_avg on a test set, and that of guesses; None where older results do not have it."""

    A_avg: float | None
    chance: float | None  # one of the classes seen so far, at random
    constant: float | None  # always the class with most samples of those seen so far


class Loss(Effect):
    """Hold how many points are lost without the cue, paired by seed, and what that shows."""

    finding: NotRequired[Finding]


class GroupsSeen(TypedDict):
    """Hold how unequal groups of samples are at the end of the stream, which shows no reliance by itself."""

    worst: float  # the accuracy of the worst group, a mean over seeds
    name: str  # the group that is the worst in most seeds
    gap: float  # points between the worst group and the best


class Diagnosis(TypedDict):
    """Hold what an arm does; `lost` is by test set, or by group where no test set lacks the cue."""

    arm: str
    seeds: int
    finding: Finding
    cue: str  # the test set that has the cue as the training images have it
    accuracy: dict[str, Accuracy]
    lost: dict[str, Loss]
    lost_between: Literal["test sets", "groups"]
    observed: NotRequired[dict[str, Loss]]  # beside `cue`, on sets of which nobody says whether they have the cue
    groups: NotRequired[dict[str, GroupsSeen]]  # by column, where nothing else is seen of what it leans on


def diagnose(arm: str, summary: dict[str, Any]) -> Diagnosis:
    """Return what an arm does, from its summary.

    `cue` in a summary says which test sets have the cue as the training images have it (True) and which lack it
    (False); where it does not, their names do. Where no test set is known to lack it, the groups of samples that follow
    and contradict the cue take their place; without these, what is lost on other test sets is an observation.
    """
    tests = summary["tests"]
    cue = next((test for test, with_it in cue_of(summary).items() if with_it), next(iter(tests)))
    accuracy = {test: accuracy_on(test, summary) for test in tests}
    by_set = {test: loss(tests[cue]["A_avg"], tests[test]["A_avg"]) for test in sets_without_cue(summary)}
    lost = by_set or loss_of_groups(tests[cue])
    for each, p in zip(lost.values(), holm([each["p"] for each in lost.values()])):
        each["p_holm"] = p
        each["finding"] = finding_of_loss(each, margin(accuracy[cue]))
    finding = overall(accuracy, [each["finding"] for each in lost.values()])
    unseen = finding == "no set without the cue"
    others = [test for test in tests if test != cue and unseen]
    observed = {test: loss(tests[cue]["A_avg"], tests[test]["A_avg"]) for test in others}
    groups = groups_seen(tests[cue]) if unseen else {}
    diagnosis: Diagnosis = {
        "arm": arm,
        "seeds": len(summary["seeds"]),
        "finding": finding,
        "cue": cue,
        "accuracy": accuracy,
        "lost": {test: possible(each, tests[cue]["A_avg"]) for test, each in lost.items()},
        "lost_between": "test sets" if by_set or not lost else "groups",
    }
    if observed:
        diagnosis["observed"] = {test: possible(each, tests[cue]["A_avg"]) for test, each in observed.items()}
    if groups:
        diagnosis["groups"] = groups
    return diagnosis


def accuracy_on(test: str, summary: dict[str, Any]) -> Accuracy:
    """Return the mean accuracy of a test set over seeds, and that of guesses."""
    guesses = summary.get("guesses", {}).get(test, {})
    return {
        "A_avg": mean(summary["tests"][test]["A_avg"]),
        "chance": mean(guesses.get("chance", [])),
        "constant": mean(guesses.get("constant", [])),
    }


def mean(values: list[float | None]) -> float | None:
    """Return the mean of the values that are known; None where none is."""
    return estimate(values).mean


def loss(with_cue: list[float | None], without: list[float | None]) -> Loss:
    """Return how many points are lost without the cue."""
    return cast(Loss, paired_effect(without, with_cue))  # with minus without


def possible(lost: Loss, with_cue: list[float | None]) -> Loss:
    """Return a loss to show: its interval ends where no accuracy or all of it would be left."""
    mean_with, interval = mean(with_cue), lost["ci95"]
    if mean_with is None or interval is None:
        return lost
    low, high = max(interval[0], mean_with - 100.0), min(interval[1], mean_with)
    return {**lost, "ci95": [low, high]} if low <= high else lost


def loss_of_groups(figures: dict[str, list[float | None]]) -> dict[str, Loss]:
    """Return what is lost on samples that contradict the cue; {} where it is unknown which these are."""
    if "follow" not in figures or "contradict" not in figures:
        return {}
    of_groups = loss(figures["follow"], figures["contradict"])
    return {} if of_groups["diff"] is None else {"contradict": of_groups}


def groups_seen(figures: dict[str, list[float | None]]) -> dict[str, GroupsSeen]:
    """Return the worst group and the gap, by column of groups; without columns that have no group large enough."""
    seen: dict[str, GroupsSeen] = {}
    for column in columns_of(figures):
        name, worst, gap = worst_name(figures, column), mean(figures[WORST + column]), mean(figures[GAP + column])
        if name is not None and worst is not None and gap is not None:
            seen[column] = {"worst": worst, "name": name, "gap": gap}
    return seen


def better_guess(accuracy: Accuracy) -> float | None:
    """Return the accuracy of the better guess; None where older results do not have it."""
    chance, constant = accuracy["chance"], accuracy["constant"]
    return None if chance is None or constant is None else max(chance, constant)


def margin(with_cue: Accuracy) -> float | None:
    """Return how many points may be lost without reliance, from the accuracy with the cue; None where nobody knows."""
    reached, guess = with_cue["A_avg"], better_guess(with_cue)
    return None if reached is None or guess is None else min(LITTLE, SHARE * (reached - guess))


def finding_of_loss(lost: Loss, margin: float | None) -> Finding:
    """Return what a loss shows, by its whole interval: reliance, none of more points than the margin, or neither."""
    interval, p, diff = lost["ci95"], lost.get("p_holm"), lost["diff"]
    if lost["n"] < FEWEST or diff is None:
        return "too few seeds"
    if interval is None or p is None:
        return "cannot tell"
    if margin is not None and margin > 0 and interval[1] <= margin:
        return "no reliance"
    return "relies" if p < SIGNIFICANT and diff > 0 else "cannot tell"


def overall(accuracy: dict[str, Accuracy], findings: list[Finding]) -> Finding:
    """Return the finding of all test sets together."""
    if all(learned(each) is False for each in accuracy.values()):
        return "barely learned"
    if not findings:
        return "no set without the cue"
    order: tuple[Finding, ...] = ("too few seeds", "relies", "cannot tell", "no reliance")
    return min(findings, key=order.index)


def learned(accuracy: Accuracy) -> bool | None:
    """Return whether an accuracy is more than BARELY above that of the better guess; None where that is unknown."""
    reached, guess = accuracy["A_avg"], better_guess(accuracy)
    if reached is None or guess is None:
        return None
    return reached - guess > BARELY * (100 - guess)


def diagnosed(comparison: dict[str, Any]) -> dict[str, Any]:
    """Return the content of compare.json with the diagnosis of the arm that all others are compared with."""
    arm, summary = next(iter(comparison["arms"].items()))
    return comparison | {"diagnosis": diagnose(arm, summary)}
