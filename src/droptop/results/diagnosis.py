"""What a learner does before anything is debiased: has it learned at all, and does it lean on the shortcut?

    diagnosis = diagnose("none", summary)      # of the arm that others are compared with
    diagnosis["finding"], diagnosis["lost"]["removed"]["diff"]

Numbers to numbers; `report/sentences.py` puts them into words.
"""

from typing import Any, Literal, NotRequired, TypedDict

from droptop.results.metrics import GAP, WORST, columns_of, worst_name
from droptop.results.statistics import FEWEST, SIGNIFICANT, Effect, estimate, holm, paired_effect, within_possible

LITTLE = 5.0  # points; who loses at most so many does not rely on the shortcut
BARELY = 0.1  # of the way from a blind guess to 100%; who came no further has barely learned

Finding = Literal[
    "barely learned",  # nothing else can be told of it
    "no set without the cue",  # nobody can see what it leans on
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
    groups: NotRequired[dict[str, GroupsSeen]]  # by column, where nothing else is seen of what it leans on


def diagnose(arm: str, summary: dict[str, Any]) -> Diagnosis:
    """Return what an arm does, from its summary.

    `cue` in a summary says which test sets have the cue as the training images have it (True) and which lack it
    (False); where it does not, the first set has it and the others lack it. Where no test set lacks it, the groups of
    samples that follow and contradict the cue take their place.
    """
    tests = summary["tests"]
    has = {test: has for test, has in summary.get("cue", {}).items() if test in tests}
    has = has or {test: place == 0 for place, test in enumerate(tests)}
    cue = next((test for test, with_it in has.items() if with_it), next(iter(tests)))
    accuracy = {test: accuracy_on(test, summary) for test in tests}
    by_set = {test: loss(tests[cue]["A_avg"], tests[test]["A_avg"]) for test, with_it in has.items() if not with_it}
    lost = by_set or loss_of_groups(tests[cue])
    for each, p in zip(lost.values(), holm([each["p"] for each in lost.values()])):
        each["p_holm"] = p
        each["finding"] = finding_of_loss(each)
    finding = overall(accuracy, [each["finding"] for each in lost.values()])
    groups = groups_seen(tests[cue]) if finding == "no set without the cue" else {}
    diagnosis: Diagnosis = {
        "arm": arm,
        "seeds": len(summary["seeds"]),
        "finding": finding,
        "cue": cue,
        "accuracy": accuracy,
        "lost": lost,
        "lost_between": "test sets" if by_set or not lost else "groups",
    }
    return {**diagnosis, "groups": groups} if groups else diagnosis


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
    """Return how many points are lost without the cue, with an interval that ends at what is possible."""
    gained = within_possible(paired_effect(with_cue, without), with_cue, "A_avg")  # without minus with
    diff, interval = gained["diff"], gained["ci95"]
    turned = {"diff": None if diff is None else -diff, "ci95": interval and [-interval[1], -interval[0]]}
    return {**gained, **turned}  # type: ignore[typeddict-item]


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


def finding_of_loss(lost: Loss) -> Finding:
    """Return what a loss shows: reliance, none of more than LITTLE points, or neither."""
    interval, p, diff = lost["ci95"], lost.get("p_holm"), lost["diff"]
    if lost["n"] < FEWEST or interval is None or p is None or diff is None:
        return "too few seeds"
    if interval[1] <= LITTLE:
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
    reached, chance, constant = accuracy["A_avg"], accuracy["chance"], accuracy["constant"]
    if reached is None or chance is None or constant is None:
        return None
    guess = max(chance, constant)
    return reached - guess > BARELY * (100 - guess)


def diagnosed(comparison: dict[str, Any]) -> dict[str, Any]:
    """Return the content of compare.json with the diagnosis of the arm that all others are compared with."""
    arm, summary = next(iter(comparison["arms"].items()))
    return comparison | {"diagnosis": diagnose(arm, summary)}
