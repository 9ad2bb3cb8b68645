"""The answer of a study of cues as a table and as a sentence, for a terminal and for a page."""

from collections.abc import Sequence

from rich.table import Table

from droptop.options import NO_DEBIAS
from droptop.results.statistics import Effect, Estimate, verdict
from droptop.results.stress import FIGURE, Stressed
from droptop.system.short_names import short_name

LEANS = "leaning on it"
UNKNOWN = ("one seed: cannot tell", "not measured")


def leaning(row: Stressed) -> str:
    """Return what a row's cost shows, in a few words."""
    return verdict(FIGURE, row.cost).replace("better", LEANS).replace("worse", "avoiding it")


def answer(rows: Sequence[Stressed]) -> list[str]:
    """Return the answer of a study of cues: on how many the learner leans, and what debiasing gives back, if any."""
    plain = [row for row in rows if row.debias == NO_DEBIAS] or list(rows)
    counts = {word: sum(leaning(row) == word for row in plain) for word in (LEANS, f"points to {LEANS}")}
    sure, unsure = counts.values()
    text = f"{learner_of(plain)} leans on {sure or 'none'} of {len(plain)} cue{'s' * (len(plain) > 1)}"
    if all(leaning(row) in UNKNOWN for row in plain):
        text = f"One seed cannot tell on which cues {learner_of(plain)} leans"
    text += f"; too few seeds point to {unsure} more" if unsure else ""
    costs = [(row.cost["diff"], row.cue) for row in plain if row.cost["diff"] is not None]
    if (sure or unsure) and costs:
        points, cue = max(costs)
        text += f"; {cue} costs most, {points:.1f} points"
    sentences = [f"{text}."]
    gains = [(effect["diff"], row, effect) for row in rows if (effect := row.given_back) and effect["diff"] is not None]
    if gains:
        points, row, effect = max(gains, key=lambda gain: gain[0])
        sentences.append(
            f"{short_name(row.debias)} gives back most with {row.cue}: {points:+.1f} points where the cue says nothing "
            f"({verdict(FIGURE, effect)})."
        )
    return sentences


def learner_of(rows: Sequence[Stressed]) -> str:
    """Return the learner that rows are of, or how many."""
    methods = list(dict.fromkeys(short_name(row.method) for row in rows))
    return methods[0] if len(methods) == 1 else f"{len(methods)} learners"


def stress_table(rows: Sequence[Stressed]) -> Table:
    """Return the table of a study of cues: what each costs every arm, and what debiasing gives back."""
    several = len({row[:2] for row in rows}) > 1
    table = Table(
        *(["data", "method"] * several),
        "cue",
        "arm",
        "biased",
        "random",
        "the cue costs",
        "verdict",
        "given back, random",
        "verdict",
        "on biased",
        title=f"{'' if several else f'{short_name(rows[0].method)} on {short_name(rows[0].data)}: '}"
        f"points of {FIGURE}; costs are biased minus random",
    )
    for row in rows:
        table.add_row(
            *((short_name(row.data), short_name(row.method)) if several else ()),
            row.cue,
            short_name(row.debias),
            with_error(row.biased),
            with_error(row.random),
            with_interval(row.cost),
            leaning(row),
            "" if row.given_back is None else with_interval(row.given_back),
            "" if row.given_back is None else verdict(FIGURE, row.given_back),
            "" if row.on_biased is None else with_interval(row.on_biased),
        )
    seeds = max(row.biased.n for row in rows)
    table.caption = f"mean ± standard error and 95% intervals, n = {seeds}; verdicts after Holm's correction"
    return table


def with_interval(effect: Effect) -> str:
    """Return a difference, and its interval below it."""
    if effect["diff"] is None:
        return "-"
    interval = "" if effect["ci95"] is None else f"\n{effect['ci95'][0]:+.1f} .. {effect['ci95'][1]:+.1f}"
    return f"{effect['diff']:+.1f}{interval}"


def with_error(mean: Estimate) -> str:
    """Return a mean with its standard error, where there is one."""
    if mean.mean is None:
        return "-"
    return f"{mean.mean:.1f}" + ("" if mean.error is None else f" ± {mean.error:.1f}")
