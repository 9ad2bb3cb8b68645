"""The answer of a study of cues as a table and as a sentence, for a terminal and for a page."""

from collections.abc import Sequence

from rich.table import Table

from droptop.options import NO_DEBIAS
from droptop.results.statistics import Effect, Estimate, verdict
from droptop.results.stress import FIGURE, Stressed
from droptop.system.short_names import short_name


def leaning(row: Stressed) -> str:
    """Return what a row's cost shows, in a few words."""
    return verdict(FIGURE, row.cost).replace("better", "leaning on it").replace("worse", "avoiding it")


def answer(rows: Sequence[Stressed]) -> str:
    """Return the answer of a study of cues in one or two sentences."""
    plain = [row for row in rows if row.debias == NO_DEBIAS] or list(rows)
    leans = [row for row in plain if leaning(row) == "leaning on it"]
    points = [row for row in plain if leaning(row) == "points to leaning on it"]
    costs = [row for row in plain if row.cost["diff"] is not None]
    text = f"Of {len(plain)} cue{'s' * (len(plain) > 1)}, {learner_of(plain)} leans on {len(leans)}"
    text += f", and too few seeds point to {len(points)} more" if points else ""
    if not costs:
        return text + "."
    most = max(costs, key=lambda row: row.cost["diff"] or 0.0)
    text += f"; {most.cue} costs most, {most.cost['diff']:.1f} points of {FIGURE}."
    best = [(effect["diff"], row, effect) for row in rows if (effect := row.given_back) and effect["diff"] is not None]
    if best:
        points_back, row, effect = max(best, key=lambda item: item[0])
        text += f" {short_name(row.debias)} gives back most where the cue says nothing, {points_back:+.1f} points with "
        text += f"{row.cue} ({verdict(FIGURE, effect)})."
    return text


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
    table.caption = f"mean ± standard error and 95% intervals of {seeds} seeds; verdicts after Holm's correction"
    return table


def with_interval(effect: Effect) -> str:
    """Return a difference with its interval, as +1.0 (+0.2 .. +1.8)."""
    if effect["diff"] is None:
        return "-"
    interval = "" if effect["ci95"] is None else f" ({effect['ci95'][0]:+.1f} .. {effect['ci95'][1]:+.1f})"
    return f"{effect['diff']:+.1f}{interval}"


def with_error(mean: Estimate) -> str:
    """Return a mean with its standard error."""
    return (
        "-"
        if mean.mean is None
        else f"{mean.mean:.1f}"
        if mean.error is None
        else f"{mean.mean:.1f} ± {mean.error:.1f}"
    )
