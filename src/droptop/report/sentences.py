"""What a comparison says, in sentences for a terminal and a page: its headline, and what stands below it.

All take a comparison as `readable` gives it, whose intervals end at what is possible.
"""

import math
from collections.abc import Sequence
from typing import Any

from droptop.options import NO_DEBIAS
from droptop.report.tables import counted, effect_cells, listed, mean_error
from droptop.report.tuning import tuned_alike
from droptop.results.cue_sets import sets_without_cue
from droptop.results.diagnosis import accuracy_on, learned
from droptop.results.statistics import (
    EQUAL,
    FEWEST,
    NO_VERDICT,
    POWER,
    SAME,
    SIGNIFICANT,
    Effect,
    estimate,
    verdict,
    within_possible,
)
from droptop.system.short_names import short_name

VERBS = {"better": "helps", "worse": "hurts"}
NO_DIFFERENCE = "no significant difference"
Effects = dict[str, dict[str, dict[str, Effect]]]  # by arm, test set and figure


def readable(comparison: dict[str, Any]) -> dict[str, Any]:
    """Return a comparison to show: its intervals end where an arm would be above 100% or below what is possible."""
    arms = comparison["arms"]

    def cut(effects: Effects, other: dict[str, str]) -> Effects:
        return {
            arm: {
                test: {
                    figure: within_possible(effect, arms[other[arm]]["tests"][test][figure], figure)
                    for figure, effect in figures.items()
                }
                for test, figures in tests.items()
            }
            for arm, tests in effects.items()
        }

    first = next(iter(arms))
    cut_effects = {"effects": cut(comparison["effects"], dict.fromkeys(arms, first))}
    if "at_equal_cost" in comparison:
        cut_effects["at_equal_cost"] = cut(comparison["at_equal_cost"], {arm: EQUAL + arm for arm in arms})
    return comparison | cut_effects


def decisive_sets(comparison: dict[str, Any]) -> list[str]:
    """Return the test sets that decide which arm is best: those known to lack the cue, else all."""
    first = next(iter(comparison["arms"].values()))
    return sets_without_cue(first) or list(first["tests"])


def ranked(comparison: dict[str, Any]) -> list[str]:
    """Return the arms besides the reference, that with the largest effect on A_avg on decisive sets first."""
    decisive = decisive_sets(comparison)

    def mean_effect(arm: str) -> float:
        mean, *_ = estimate(comparison["effects"][arm][test]["A_avg"]["diff"] for test in decisive)
        return -math.inf if mean is None else mean

    return sorted(comparison["effects"], key=mean_effect, reverse=True)


def contenders(ranking: Sequence[str]) -> list[str]:
    """Return arms without the references of equal cost, which are there to be compared with."""
    return [arm for arm in ranking if not (arm.startswith(EQUAL) and arm.removeprefix(EQUAL) in ranking)]


def weight(comparison: dict[str, Any]) -> str:
    """Return how much a comparison weighs: seeds, whether it is a quick look, and the correction."""
    first = next(iter(comparison["arms"].values()))
    count = sum(map(len, comparison["effects"].values()))
    parts = [f"a quick look: {first['limit']} samples per task"] if "limit" in first else []
    parts.append(counted(len(first["seeds"]), "seed"))
    if count > 1 and len(first["seeds"]) >= FEWEST:
        parts.append(f"p-values corrected for {count} {'test sets' if one_effect(comparison) else 'comparisons'}")
    return ", ".join(parts)


def one_effect(comparison: dict[str, Any]) -> bool:
    """Return whether there is one arm besides that which it is compared with."""
    return len(comparison["effects"]) == 1


def words_of(comparison: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return the verdict on average accuracy per arm and test set."""
    return {
        arm: {test: verdict("A_avg", figures["A_avg"]) for test, figures in tests.items()}
        for arm, tests in comparison["effects"].items()
    }


def headline(comparison: dict[str, Any]) -> str:
    """Return what a comparison found in one sentence, with its weight; references of equal cost do not contend."""
    reference, first = next(iter(comparison["arms"].items()))
    words, few = words_of(comparison), len(first["seeds"]) < FEWEST
    arms = contenders(ranked(comparison))
    decisive, method = decisive_sets(comparison), short_name(first["method"])
    helping = [arm for arm in arms if any(words[arm][test] == "better" for test in decisive)]
    best = (helping or arms)[0]
    among = f"the best of {len(arms)} arms{'' if helping else ' so far'}"
    said = sentence(best, reference, method, words[best], f", {among}," if len(arms) > 1 else "")
    if len(arms) > 1 and among not in said:
        said = f"{among}: {said}"
    elsewhere = {
        arm: [test for test, word in words[arm].items() if word == "better"] for arm in arms if arm not in helping
    }
    only = [
        f"{arm} {verb('better', reference, method)} on {listed(tests)}" for arm, tests in elsewhere.items() if tests
    ]
    if len(arms) > 1 and not helping and not few:
        where = f" on {listed(decisive)}" if only else ""
        said = f"none of {len(arms)} arms {verb('better', reference, method)}{where} by a significant difference"
        said += f"; {' and '.join(only)}" if only else ""
    if only and not helping:
        said += ", but no gain is shown where the cue is gone"
    rest = f"; {NO_VERDICT}" if few else ""
    return f"On {short_name(first['data'])}, {said}{rest} ({weight(comparison)})."


def verb(word: str, reference: str, method: str) -> str:
    """Return what an arm does to a method without debiasing, or how it compares with another reference."""
    return f"{VERBS[word]} {method}" if reference == NO_DEBIAS else f"is {word} than {reference}"


def reference_name(reference: str, article: str = "the") -> str:
    """Return the name of an arm that others are compared with: "the plain arm" for one without debiasing."""
    return f"{article} plain arm" if reference == NO_DEBIAS else reference


def sentence(arm: str, reference: str, method: str, words: dict[str, str], among: str = "") -> str:
    """Return what an arm does beside the reference, from a verdict per test set; `among` may follow the arm's name."""
    by_word: dict[str, list[str]] = {}
    for test, word in words.items():
        by_word.setdefault(word, []).append(test)
    found = [f"{verb(word, reference, method)} on {listed(by_word[word])}" for word in VERBS if word in by_word]
    if found:
        rest = f"; {NO_DIFFERENCE} on {listed(by_word[NO_DIFFERENCE])}" if NO_DIFFERENCE in by_word else ""
        return f"{arm} {', and '.join(found)}{rest}"
    hints = [(word, tests) for word, tests in by_word.items() if word.startswith("points to")]
    if hints:
        beside = "" if reference == NO_DEBIAS else f" instead of {reference}"
        pointed = [f"{word.removeprefix('points ')} on {listed(tests)}" for word, tests in hints]
        return f"with {arm}{beside} the seeds point {', and '.join(pointed)}"
    pair = (f"{method} with {arm}{among}", "without") if reference == NO_DEBIAS else (f"{arm}{among}", reference)
    between = f"between {' and '.join(pair)}"
    for word in (NO_DIFFERENCE, "no clear direction"):
        if word in by_word:
            return f"{word} {between}"
    return f"{'equal differences in every seed' if SAME in by_word else 'one seed'} cannot tell a difference {between}"


def answer(comparison: dict[str, Any]) -> list[str]:
    """Return what a comparison says in sentences: of a pair, one per test set; of more arms, one per arm, ranked."""
    count = sum(map(len, comparison["effects"].values()))
    lines = given_back(comparison)
    if len(comparison["effects"]) == 1:
        ((arm, tests),) = comparison["effects"].items()
        corrected = f", corrected for {count} test sets" if count > 1 else ""
        lines += [on_test_set(arm, test, effects["A_avg"], corrected) for test, effects in tests.items()]
    else:
        lines += [of_arm(arm, comparison["effects"][arm]) for arm in ranked(comparison)]
        plain = next(iter(comparison["arms"]))
        lines.append(f"points of A_avg beside {plain}; words go by p-values corrected for {count} comparisons")
    lines += power(comparison) + tuned_alike(comparison.get("tuning"))
    for arm, tests in comparison.get("at_equal_cost", {}).items():
        lines.append(
            of_arm(f"{arm} against {reference_name(next(iter(comparison['arms'])), 'a')} of equal cost", tests)
        )
    for arm, summary in comparison["arms"].items():
        if dropped := summary.get("dropped"):
            whose = f"{arm}: " if len(comparison["arms"]) > 2 else ""
            lines.append(
                f"{whose}{mean_error(dropped['share'])}% of the dropped cells lay on the shortcut; "
                f"{mean_error(dropped['chance'])}% would have by chance"
            )
    return lines


def given_back(comparison: dict[str, Any]) -> list[str]:
    """Return what the best arm gives back of what relying on the cue costs, per set where no arm is sure to help."""
    found, words = comparison.get("diagnosis"), words_of(comparison)
    arms, lines = contenders(list(comparison["effects"])), []
    for test, lost in found["lost"].items() if found and found["lost_between"] == "test sets" else ():
        if lost["finding"] != "relies" or any(words[arm][test] == "better" for arm in arms):
            continue
        gains = {arm: diff for arm in arms if (diff := comparison["effects"][arm][test]["A_avg"]["diff"]) is not None}
        best = max(gains, key=gains.__getitem__, default="")
        gain = gains.get(best, 0.0)
        back = (
            f"{best} gives back {gain:.1f} on {test} ({words[best][test]})"
            if gain > 0
            else f"no arm gives back any on {test}"
        )
        blind = "; all arms are hardly better than a blind guess there" if all_guess(comparison, test) else ""
        lines.append(f"of {lost['diff']:.1f} lost points, {back}{blind}")
    return lines


def all_guess(comparison: dict[str, Any], test: str) -> bool:
    """Return whether all arms are hardly better than a guess on a test set."""
    return all(learned(accuracy_on(test, arm)) is False for arm in comparison["arms"].values())


def power(comparison: dict[str, Any]) -> list[str]:
    """Return which effects so many seeds would have seen, as a sentence; [] where nobody can know."""
    effects = [tests["A_avg"] for arm in comparison["effects"].values() for tests in arm.values()]
    which = points_seen(effects, "the test set" if one_effect(comparison) else "test set and arm")
    if which is None:
        return []
    seeds = counted(max(effect["n"] for effect in effects), "seed")
    return [f"the smallest effect that {seeds} would have seen ({POWER:.0%} power, p < {SIGNIFICANT}): {which}"]


def points_seen(effects: Sequence[Effect], by: str) -> str | None:
    """Return how large an effect had to be to be seen, in words, which may depend on something; None where unknown."""
    least = [effect["least"] for effect in effects if effect["least"] is not None]
    if not least:
        return None
    low, high = f"{min(least):.1f}", f"{max(least):.1f}"
    return f"{low} points" if low == high else f"{low} to {high} points, depending on {by}"


def on_test_set(arm: str, test: str, effect: Effect, corrected: str) -> str:
    """Return whether an arm helps on a test set, as a sentence."""
    word = verdict("A_avg", effect)
    said = f"{arm} {VERBS[word]}" if word in VERBS else word
    diff, interval, *_, p = effect_cells(effect)
    p = p if p.startswith("<") else f"= {p}"
    spread = f" (95% interval {interval}; p {p}{corrected})" if effect["ci95"] else ""
    return f"{test}: {said}, {diff} points of A_avg{spread}"


def of_arm(arm: str, tests: dict[str, dict[str, Effect]]) -> str:
    """Return on which test sets an arm helps and on which it hurts, as a sentence."""
    by_word: dict[str, list[str]] = {}
    for test, effects in tests.items():
        effect = effects["A_avg"]
        by_word.setdefault(verdict("A_avg", effect), []).append(f"{test} ({effect_cells(effect)[0]})")
    words = sorted(by_word, key=lambda word: ("better", "worse", word).index(word))
    return f"{arm}: " + "; ".join(f"{VERBS.get(word, word)} on {listed(by_word[word])}" for word in words)
