"""Results as tables and sentences for a terminal."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table

from droptop.options import NO_DEBIAS
from droptop.results.metrics import is_of_group
from droptop.results.statistics import CURVES, EQUAL, Effect, estimate, verdict
from droptop.system.short_names import short_name

LEGEND = "percent, mean ± standard error; F_last: lower is better"
COST = "passes: images forward and backward per image of the stream; forward alone counts a third"
COST_COLUMNS = ["arm", "passes", "ms per step", "times the plain arm's"]
VERBS = {"better": "helps", "worse": "hurts"}
NAMES = {"follow": "follow the shortcut", "contradict": "contradict it", "worst": "worst group"}


def mean_error(values: Iterable[float | None]) -> str:
    """Return mean ± standard error over seeds as text; "-" without values."""
    mean, error, _ = estimate(values)
    return "-" if mean is None else f"{mean:.1f}" if error is None else f"{mean:.1f} ± {error:.1f}"


def p_text(p: float | None) -> str:
    """Return a p-value as text."""
    return "-" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def effect_cells(effect: Effect) -> list[str]:
    """Return difference, 95% interval, p-value and, where there is one, corrected p-value as cells of a table."""
    diff, interval = effect["diff"], effect["ci95"]
    return [
        "-" if diff is None else f"{diff:+.1f}",
        "-" if interval is None else f"{interval[0]:+.1f} .. {interval[1]:+.1f}",
        p_text(effect["p"]),
        *([p_text(effect["p_holm"])] if "p_holm" in effect else []),
    ]


def heading(summary: dict[str, Any]) -> str:
    """Return method, stream and number of seeds as text."""
    seeds = len(summary["seeds"])
    on = f"{short_name(summary['method'])} on {short_name(summary['data'])}"
    return f"{on}, {seeds} seed{'s' if seeds > 1 else ''}"


def run_table(summary: dict[str, Any]) -> Table:
    """Return the table of a run: every figure of every test set."""
    table = Table("test set", "", short_name(summary["debias"]), title=f"{heading(summary)} ({LEGEND})")
    for test, figures in summary["tests"].items():
        for figure, values in figures.items():
            if figure not in CURVES and not is_of_group(figure):
                table.add_row(test if figure == "A_avg" else "", NAMES.get(figure, figure), mean_error(values))
        table.add_section()
    return table


def compare_table(comparison: dict[str, Any]) -> Table:
    """Return the table of a comparison: of a pair every figure, of more arms the average accuracy, ranked."""
    return pair_table(comparison) if len(comparison["effects"]) == 1 else arms_table(comparison)


def pair_table(comparison: dict[str, Any]) -> Table:
    """Return the table of two arms: every figure of both, their difference and what it means."""
    plain, debiased = comparison["arms"].values()
    (effects,) = comparison["effects"].values()
    table = Table(
        "test set",
        "",
        *comparison["arms"],
        "difference",
        "95% interval",
        "p",
        "p (Holm)",
        "",
        title=f"{heading(plain)} ({LEGEND})",
        caption="p (Holm) is corrected for the number of test sets, intervals are not; words go by p (Holm)",
    )
    for test, figures in effects.items():
        for figure, effect in figures.items():
            if is_of_group(figure):
                continue  # the page has them
            table.add_row(
                test if figure == "A_avg" else "",
                NAMES.get(figure, figure),
                mean_error(plain["tests"][test][figure]),
                mean_error(debiased["tests"][test][figure]),
                *effect_cells(effect),
                verdict(figure, effect),
            )
        table.add_section()
    return table


def arms_table(comparison: dict[str, Any]) -> Table:
    """Return the table of several arms: the average accuracy of each, and its difference to that of the plain arm.

    The arm with the largest effect on average comes first. The report page has every other figure.
    """
    plain_name, plain = next(iter(comparison["arms"].items()))
    table = Table(
        "test set",
        "arm",
        "A_avg",
        f"beside {plain_name}",
        "95% interval",
        "p",
        "p (Holm)",
        "",
        title=f"{heading(plain)} (percent, mean ± standard error)",
        caption="p (Holm) is corrected for the number of arms times test sets, intervals are not; words go by p (Holm)",
    )
    for test, figures in plain["tests"].items():
        table.add_row(test, plain_name, mean_error(figures["A_avg"]))
        for arm in ranked(comparison):
            effect = comparison["effects"][arm][test]["A_avg"]
            word = verdict("A_avg", effect)
            mean = mean_error(comparison["arms"][arm]["tests"][test]["A_avg"])
            table.add_row("", arm, mean, *effect_cells(effect), word if word in ("better", "worse") else "")
        table.add_section()
    return table


def ranked(comparison: dict[str, Any]) -> list[str]:
    """Return the arms besides the plain one, that with the largest effect on A_avg first: the mean over test sets."""

    def mean_effect(arm: str) -> float:
        mean, *_ = estimate(tests["A_avg"]["diff"] for tests in comparison["effects"][arm].values())
        return -math.inf if mean is None else mean

    return sorted(comparison["effects"], key=mean_effect, reverse=True)


def contenders(ranking: Sequence[str]) -> list[str]:
    """Return arms without the plain ones of equal cost, which are there to be compared with."""
    return [arm for arm in ranking if not (arm.startswith(EQUAL) and arm.removeprefix(EQUAL) in ranking)]


def cost_table(costs: dict[str, Any]) -> Table:
    """Return the table of what a training step of each arm costs."""
    table = Table(*COST_COLUMNS, title="what a training step costs", caption=COST)
    for row in cost_rows(costs):
        table.add_row(*row)
    return table


def cost_rows(costs: dict[str, Any]) -> list[list[str]]:
    """Return what a training step of each arm costs as text, under COST_COLUMNS."""
    plain = next(iter(costs.values()))
    return [
        [arm, f"{cost['passes']:.2f}", f"{cost['ms']:.2f}", f"{cost['ms'] / plain['ms']:.2f}"]
        for arm, cost in costs.items()
    ]


def bench_line(row: dict[str, Any]) -> str:
    """Return one measurement of `bench` as text."""
    arm = f"{row['method']} {row['debias']}, {row['engine']}, {row['seeds']} at once"
    return f"{arm}: {row['ms']:.2f} ms per step and seed"


def bench_table(rows: list[dict[str, Any]], data: str, steps: int) -> Table:
    """Return the table of `bench`: the time of a step, its ratio to plain ER, and the share of each part.

    Plain ER is that of the same engine and number of seeds.
    """
    table = Table(
        "method",
        "debias",
        "engine",
        "seeds",
        "ms per step and seed",
        "steps / s",
        "of er",
        "MiB",
        "spent in",
        title=f"{data}, {steps} steps (mean ± standard error)",
    )
    er = {(row["engine"], row["seeds"]): row["ms"] for row in rows if (row["method"], row["debias"]) == ("er", "none")}
    ours = [ms for (engine, _), ms in er.items() if engine != "plain loop"]
    if ours:
        er["plain loop", 1] = min(ours)  # so that its ratio says by how much our best engine beats it
    before = None
    for row in rows:
        plain = er.get((row["engine"], row["seeds"]))
        arm = (row["method"], row["debias"], row["engine"])
        shares = row.get("shares", {}) if arm != before else {}
        table.add_row(
            *(arm if arm != before else ("", "", "")),
            str(row["seeds"]),
            f"{row['ms']:.2f} ± {row['ms_error']:.2f}",
            f"{row['steps_per_second']:.0f}",
            "-" if plain is None else f"{row['ms'] / plain:.2f}",
            str(row.get("memory_mib") or "-"),
            ", ".join(f"{part} {share:.0f}%" for part, share in shares.items()),
        )
        before = arm
    return table


def answer(comparison: dict[str, Any]) -> list[str]:
    """Return what a comparison says in sentences: of a pair, one per test set; of more arms, one per arm, ranked."""
    count = sum(map(len, comparison["effects"].values()))
    if len(comparison["effects"]) == 1:
        ((arm, tests),) = comparison["effects"].items()
        corrected = f", corrected for {count} test sets" if count > 1 else ""
        lines = [on_test_set(arm, test, effects["A_avg"], corrected) for test, effects in tests.items()]
    else:
        lines = [of_arm(arm, comparison["effects"][arm]) for arm in ranked(comparison)]
        plain = next(iter(comparison["arms"]))
        lines.append(f"points of A_avg beside {plain}; words go by p-values corrected for {count} comparisons")
    for arm, tests in comparison.get("at_equal_cost", {}).items():
        lines.append(of_arm(f"{arm} against a plain arm of equal cost", tests))
    for arm, summary in comparison["arms"].items():
        if dropped := summary.get("dropped"):
            whose = f"{arm}: " if len(comparison["arms"]) > 2 else ""
            lines.append(
                f"{whose}{mean_error(dropped['share'])}% of the dropped cells lay on the shortcut; "
                f"{mean_error(dropped['chance'])}% would have by chance"
            )
    return lines


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


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def averaged_over(varied: Sequence[str]) -> str:
    """Return the clause on options that vary within a group of runs."""
    return (
        f"{listed(varied)} {'varies' if len(varied) == 1 else 'vary'} as well and "
        f"{'is' if len(varied) == 1 else 'are'} averaged over"
    )


def study_table(rows: list[dict[str, Any]], by: Sequence[str], reference: str = NO_DEBIAS) -> Table:
    """Return the table of a study: a row per group, test set and figure, with its difference to the reference."""
    table = Table(
        *by,
        "test",
        "",
        "n",
        "mean ± error",
        f"to {reference}",
        "95% interval",
        "p",
        "p (Holm)",
        title="percent; differences are paired by seed, p (Holm) is corrected for those of one figure",
    )
    for row in rows:
        error = "" if row["error"] is None else f" ± {row['error']:.1f}"
        effect = ["", "", "", ""]
        if row["diff"] is not None:
            interval = [] if row["low"] is None else [row["low"], row["high"]]
            effect = [
                f"{row['diff']:+.1f}",
                " .. ".join(f"{edge:+.1f}" for edge in interval) or "-",
                p_text(row["p"]),
                p_text(row["p_holm"]),
            ]
        table.add_row(
            *(str(row[name]) for name in by),
            row["test"],
            row["figure"],
            str(row["n"]),
            f"{row['mean']:.1f}{error}",
            *effect,
        )
    table.caption = f"{LEGEND}; n: seeds"
    return table
