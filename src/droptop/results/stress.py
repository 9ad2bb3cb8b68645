"""What painted cues cost a learner, and what debiasing gives back: the results of a study over `--shortcut`.

The cost of a cue is a learner's accuracy where the cue is as in training (test set `biased`) minus that where it says
nothing (`random`): points that it owes to the cue. A debiaser gives back what it gains on `random`, and takes what it
loses on `biased`. All differences are paired by seed.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from droptop.options import BIASED, NO_CUE, NO_DEBIAS, RANDOM
from droptop.results.diagnosis import Accuracy, learned
from droptop.results.statistics import Effect, Estimate, estimate, holm, paired_effect, within_possible

CUE = "stream.shortcut"
FIGURE = "A_avg"
Numbers = dict[int, float]  # by seed
Key = tuple[str, str, str, str]  # stream, method, cue and arm


class Stressed(NamedTuple):
    """Hold what one cue does to one learner in one arm; no gains of the plain arm."""

    data: str
    method: str
    cue: str
    debias: str
    biased: Estimate
    random: Estimate
    cost: Effect  # biased minus random
    given_back: Effect | None  # on random, beside the plain arm
    on_biased: Effect | None  # on biased, beside the plain arm
    barely_learned: bool = False  # hardly better than a guess on both sets; False where older results do not say


def stressed(values: Iterable[dict[str, Any]], guesses: Iterable[dict[str, Any]] = ()) -> list[Stressed]:
    """Return a row per stream, method, cue and arm, of a study's figures; none where no cue was painted.

    `guesses` has what guesses reach, as figures `chance` and `constant`. The cue that costs the plain learner most
    comes first, and its plain arm. p_holm is corrected by families: what cues cost the plain arm, what they cost
    debiased arms, what is given back, and what changes on `biased`.
    """
    guessed, means = list(guesses), measured(values, FIGURE)
    blind = [measured(guessed, name) for name in ("chance", "constant")]
    rows = [
        row_of(key, sets, means.get((*key[:3], NO_DEBIAS)))._replace(
            barely_learned=has_barely_learned(sets, [of.get(key, {}) for of in blind])
        )
        for key, sets in means.items()
    ]
    costs = {plain: [row.cost for row in rows if (row.debias == NO_DEBIAS) == plain] for plain in (True, False)}
    for effects in (*costs.values(), gains(rows, "given_back"), gains(rows, "on_biased")):
        for effect, corrected in zip(effects, holm([effect["p"] for effect in effects])):
            effect["p_holm"] = corrected
    plain = {row[:3]: row.cost["diff"] or 0.0 for row in rows if row.debias == NO_DEBIAS}
    return sorted(
        rows, key=lambda row: (row.data, row.method, -plain.get(row[:3], 0.0), row.cue, row.debias != NO_DEBIAS)
    )


def measured(values: Iterable[dict[str, Any]], figure: str) -> dict[Key, dict[str, Numbers]]:
    """Return a figure by stream, method, cue and arm, then by test set and seed, where a cue was painted."""
    found: dict[Key, dict[str, dict[int, list[float]]]] = {}
    for value in values:
        cue, test, number = value.get(CUE, NO_CUE), value["test"], value["value"]
        if cue != NO_CUE and test in (BIASED, RANDOM) and value["figure"] == figure and number is not None:
            key = (str(value["data"]), str(value["method"]), str(cue), str(value["debias"]))
            found.setdefault(key, {BIASED: {}, RANDOM: {}})[test].setdefault(value["seed"], []).append(number)
    return {key: {test: mean_by_seed(numbers) for test, numbers in sets.items()} for key, sets in found.items()}


def has_barely_learned(sets: dict[str, Numbers], blind: Sequence[dict[str, Numbers]]) -> bool:
    """Return whether a learner is hardly better than the better of two guesses, chance and constant, on both sets."""

    def accuracy_on(test: str) -> Accuracy:
        reached, chance, constant = (estimate(of.get(test, {}).values()).mean for of in (sets, *blind))
        return {"A_avg": reached, "chance": chance, "constant": constant}

    return all(learned(accuracy_on(test)) is False for test in (BIASED, RANDOM))


def mean_by_seed(numbers: dict[int, list[float]]) -> Numbers:
    """Return one number per seed, of runs that differ in other options their mean."""
    return {seed: sum(of_seed) / len(of_seed) for seed, of_seed in numbers.items()}


def row_of(key: Key, sets: dict[str, Numbers], plain: dict[str, Numbers] | None) -> Stressed:
    """Return a row, with its gains beside the plain arm where there is one and this is another."""
    others = None if key[3] == NO_DEBIAS else plain
    return Stressed(
        *key,
        estimate(sets[BIASED].values()),
        estimate(sets[RANDOM].values()),
        difference(sets[RANDOM], sets[BIASED]),
        None if others is None else difference(others[RANDOM], sets[RANDOM]),
        None if others is None else difference(others[BIASED], sets[BIASED]),
    )


def difference(before: Numbers, after: Numbers) -> Effect:
    """Return what is added from one to the other, over the seeds that both have; its interval ends at 0% and 100%."""
    seeds = sorted(before.keys() & after.keys())
    plain: list[float | None] = [before[seed] for seed in seeds]
    return within_possible(paired_effect(plain, [after[seed] for seed in seeds]), plain, FIGURE)


def gains(rows: Sequence[Stressed], kind: str) -> list[Effect]:
    """Return the differences of one kind, where there are any."""
    return [effect for row in rows if (effect := getattr(row, kind)) is not None]
