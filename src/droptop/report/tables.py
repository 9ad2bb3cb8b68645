"""Results as tables and sentences for a terminal."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table

from droptop.results.metrics import is_of_group
from droptop.results.statistics import CURVES, Effect, estimate
from droptop.system.short_names import short_name

LEGEND = "percent, mean ± standard error; F_last: lower is better"
COST = "passes: images forward and backward per image of the stream; forward alone counts a third"
COST_COLUMNS = ["arm", "passes", "ms per step", "times the first arm's"]
CUT = "intervals end where accuracy would leave 0 to 100%"  # said where one does
NAMES = {"follow": "follow the shortcut", "contradict": "contradict it", "worst": "worst group"}


def mean_error(values: Iterable[float | None]) -> str:
    """Return mean ± standard error over seeds as text; "-" without values."""
    mean, error, _ = estimate(values)
    return "-" if mean is None else f"{mean:z.1f}" if error is None else f"{mean:z.1f} ± {error:.1f}"


def signed(points: float) -> str:
    """Return a difference as text, with its sign; what rounds to zero is +0.0."""
    return f"{points:+z.1f}"


def p_text(p: float | None) -> str:
    """Return a p-value as text."""
    return "-" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def effect_cells(effect: Effect) -> list[str]:
    """Return difference, 95% interval, p-value and, where there is one, corrected p-value as cells of a table."""
    diff, interval = effect["diff"], effect["ci95"]
    return [
        "-" if diff is None else signed(diff),
        "-" if interval is None else " .. ".join(map(signed, interval)),
        p_text(effect["p"]),
        *([p_text(effect["p_holm"])] if "p_holm" in effect else []),
    ]


def any_cut(effects: Iterable[Effect | None]) -> bool:
    """Return whether the interval of one of some effects ends at what is possible."""
    return any(effect is not None and effect.get("cut", False) for effect in effects)


def said_of_cuts(effects: Iterable[Effect | None]) -> str:
    """Return a sentence on intervals that end at what is possible, to stand behind others; empty where none does."""
    return f" {CUT.capitalize()}." if any_cut(effects) else ""


def heading(*arms: dict[str, Any]) -> str:
    """Return the methods of arms, their stream and number of seeds as text, from their summaries."""
    methods = listed(list(dict.fromkeys(short_name(arm["method"]) for arm in arms)))
    return f"{methods} on {short_name(arms[0]['data'])}, {counted(len(arms[0]['seeds']), 'seed')}"


def run_table(summary: dict[str, Any]) -> Table:
    """Return the table of a run: every figure of every test set."""
    table = Table("test set", "", short_name(summary["debias"]), title=f"{heading(summary)} ({LEGEND})")
    for test, figures in summary["tests"].items():
        for figure, values in figures.items():
            if figure not in CURVES and not is_of_group(figure):
                table.add_row(test if figure == "A_avg" else "", NAMES.get(figure, figure), mean_error(values))
        table.add_section()
    return table


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


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def counted(number: int, what: str) -> str:
    """Return a number with its noun, in the plural where need be: "2 seeds"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def averaged_over(varied: Sequence[str]) -> str:
    """Return the clause on options that vary within a group of runs."""
    return (
        f"{listed(varied)} {'varies' if len(varied) == 1 else 'vary'} as well and "
        f"{'is' if len(varied) == 1 else 'are'} averaged over"
    )
