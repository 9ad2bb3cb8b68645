"""Does debiasing help? The paired comparison of arms with the plain one, over the same seeds.

Student's t is of scipy.special, which loads for a tenth of a second, within the functions that need it: most commands
only look. scipy.stats would take half a second.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from droptop.results.metrics import GAP

SIGNIFICANT = 0.05
ROUNDING = 1e-9  # of the largest value; differences that are spread by less are the same
POWER = 0.8  # the chance to see the smallest effect that is said to be seen
FEWEST = 5  # seeds that a verdict takes; fewer give a direction
NO_VERDICT = f"no verdict below {FEWEST} seeds"
LOWER_IS_BETTER = {"F_last"}
EQUAL = "equal-"  # begins the name of a plain arm that costs as much as the arm whose name follows
SAME = "the same in every seed: cannot tell"  # the verdict on differences without a spread
CURVES = {"A", "matrix"}  # what a summary holds besides one number per seed


class Estimate(NamedTuple):
    """Hold a mean, its standard error (None for fewer than two values) and the number of values."""

    mean: float | None
    error: float | None
    n: int


def standard_error(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the standard error of the mean over the first axis, which must hold two values at least."""
    return values.std(0, ddof=1) / np.sqrt(len(values))


def estimate(values: Iterable[float | None]) -> Estimate:
    """Return mean and standard error of the values that are neither None nor NaN."""
    known = np.array([value for value in values if value is not None and not np.isnan(value)], dtype=float)
    if len(known) == 0:
        return Estimate(None, None, 0)
    error = float(standard_error(known)) if len(known) > 1 else None
    return Estimate(float(known.mean()), error, len(known))


class Effect(TypedDict):
    """Hold an arm minus the plain one, with interval and p-value of a paired t-test.

    None of too few values, and of differences that are all the same, but for arms that are equal: p is 1.0 then.
    """

    diff: float | None
    ci95: list[float] | None
    p: float | None
    n: int  # pairs, of one seed each
    least: float | None  # the smallest effect that so many pairs, as spread as these, would have seen
    cut: NotRequired[bool]  # True where the interval to show ends before the computed one: `within_possible`
    p_holm: NotRequired[float | None]  # corrected for the number of arms and test sets (Holm)


def paired_effect(plain: list[float | None], debiased: list[float | None]) -> Effect:
    """Return the mean difference over seeds, with its 95% interval and two-sided p-value."""
    from scipy.special import stdtr, stdtrit

    pairs = [(a, b) for a, b in zip(plain, debiased, strict=True) if a is not None and b is not None]
    mean, error, n = estimate(b - a for a, b in pairs)
    if mean is None or error is None:
        return {"diff": mean, "ci95": None, "p": None, "n": n, "least": None}
    rounding = ROUNDING * max(abs(value) for pair in pairs for value in pair)
    if max(abs(b - a) for a, b in pairs) <= rounding:  # the arms are equal
        return {"diff": mean, "ci95": [mean, mean], "p": 1.0, "n": n, "least": None}
    if error * n**0.5 <= rounding:  # all seeds have the same difference: there is no spread to test against
        return {"diff": mean, "ci95": None, "p": None, "n": n, "least": None}
    margin = float(stdtrit(n - 1, 0.975)) * error
    p = float(2 * stdtr(n - 1, -abs(mean) / error))
    return {"diff": mean, "ci95": [mean - margin, mean + margin], "p": p, "n": n, "least": least_effect(n) * error}


def least_effect(n: int) -> float:
    """Return the smallest effect that n pairs see with POWER, in standard errors: p < SIGNIFICANT, two-sided.

    Exact but for the chance to see it with the wrong sign, which is below 1e-6: t has a noncentral distribution then.
    """
    from scipy.special import nctdtrinc, stdtrit

    return float(nctdtrinc(n - 1, 1 - POWER, stdtrit(n - 1, 1 - SIGNIFICANT / 2)))


def within_possible(effect: Effect, plain: list[float | None], figure: str) -> Effect:
    """Return an effect to show: its interval ends where the arm would be above 100% or below what is possible."""
    mean, interval = estimate(plain).mean, effect["ci95"]
    if mean is None or interval is None:
        return effect
    lowest = -100.0 if figure in LOWER_IS_BETTER else 0.0
    low, high = max(interval[0], lowest - mean), min(interval[1], 100.0 - mean)
    if low > high or [low, high] == interval:
        return effect
    return effect | {"ci95": [low, high], "cut": True}


def holm(ps: list[float | None]) -> list[float | None]:
    """Correct p-values for their number (Holm, 1979): the smallest times n, the next times n - 1, never falling."""
    order = sorted((p, index) for index, p in enumerate(ps) if p is not None)
    corrected: list[float | None] = [None] * len(ps)
    largest = 0.0
    for rank, (p, index) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - rank)))
        corrected[index] = largest
    return corrected


def compare(summaries: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the content of compare.json from the summaries of arms by name, the plain one first.

    `effects` has what each other arm changes, by arm, test set and figure. p_holm is corrected for all comparisons of
    that figure: arms times test sets. Where an arm `equal-NAME` has the cost of the arm NAME (`--equal-cost`),
    `at_equal_cost` has the difference of these two, corrected by itself.
    """
    plain, *others = summaries
    equals = {arm: EQUAL + arm for arm in others if EQUAL + arm in others}
    comparison = {"arms": summaries, "effects": effects(dict.fromkeys(others, plain), summaries)}
    return comparison | ({"at_equal_cost": effects(equals, summaries)} if equals else {})


def effects(pairs: dict[str, str], summaries: dict[str, dict[str, Any]]) -> dict[str, dict[str, dict[str, Effect]]]:
    """Return what arms change beside others, by arm, test set and figure; `pairs` has the other arm of each."""
    by_arm = {
        arm: {
            test: {
                figure: paired_effect(values, summaries[arm]["tests"][test][figure])
                for figure, values in figures.items()
                if figure not in CURVES
            }
            for test, figures in summaries[other]["tests"].items()
        }
        for arm, other in pairs.items()
    }
    by_test = [figures for tests in by_arm.values() for figures in tests.values()]
    for figure in {figure for figures in by_test for figure in figures}:
        family = [figures[figure] for figures in by_test if figure in figures]
        for effect, p in zip(family, holm([effect["p"] for effect in family])):
            effect["p_holm"] = p
    return by_arm


def verdict(figure: str, effect: Effect) -> str:
    """Return what an effect shows, in a few words; by the corrected p-value where it has one.

    Fewer than FEWEST seeds never give a verdict. They point to better or worse where the difference is larger than its
    standard error.
    """
    from scipy.special import stdtr

    diff, p, n = effect["diff"], effect["p"], effect["n"]
    if diff is None:
        return "not measured"
    if n == 1:
        return "one seed: cannot tell"
    word = "better" if (diff < 0) == (figure in LOWER_IS_BETTER or figure.startswith(GAP)) else "worse"
    if n < FEWEST:
        return f"points to {word}" if p is None or p < 2 * stdtr(n - 1, -1) - 1e-9 else "no clear direction"
    if p is None:
        return SAME
    corrected = effect.get("p_holm", p)
    return word if corrected is not None and corrected < SIGNIFICANT else "no significant difference"


def is_significant(figure: str, effect: Effect) -> bool:
    """Return whether an effect has a verdict that is not "no significant difference"."""
    return verdict(figure, effect) in ("better", "worse")
