"""The answer of a study of cues as tables and as sentences, for a terminal and for a page."""

from collections.abc import Callable, Sequence

from rich.table import Table

from droptop.options import NO_DEBIAS
from droptop.report.compare_table import SPARED, Layout, Row, effect_row, fitted
from droptop.report.sentences import points_seen
from droptop.report.tables import any_cut, counted, listed
from droptop.results.statistics import FEWEST, Estimate, verdict
from droptop.results.stress import FIGURE, Stressed
from droptop.system.short_names import short_name

LEANS, AVOIDS = "leaning on it", "avoiding it"
POINTS = "points to "
BARELY = "barely learned"
OF_A_COST = {"better": LEANS, "worse": AVOIDS, f"{POINTS}better": POINTS + LEANS, f"{POINTS}worse": POINTS + AVOIDS}
ON_BIASED = "its 95% interval"


def leaning(row: Stressed) -> str:
    """Return what a row's cost shows, in a few words."""
    if row.barely_learned:
        return BARELY
    words = verdict(FIGURE, row.cost)
    return OF_A_COST.get(words, words)


# -- In sentences -----------------------------------------------------------------------------------------------------


def answer(rows: Sequence[Stressed]) -> list[str]:
    """Return the answer of a study of cues: on how many each learner leans, and what debiasing gives back, if any."""
    plain = [row for row in rows if row.debias == NO_DEBIAS] or list(rows)
    learners: dict[tuple[str, str, str], list[Stressed]] = {}
    for row in plain:
        learners.setdefault((row.data, row.method, row.debias), []).append(row)
    several = len({row.data for row in plain}) > 1
    sentences = [answer_of(of_learner, name_of(of_learner[0], several)) for of_learner in learners.values()]
    gains = [
        (effect["diff"], row)
        for row in rows
        if (effect := row.given_back) and effect["diff"] is not None and verdict(FIGURE, effect) == "better"
    ]
    if gains:
        points, row = max(gains, key=lambda gain: gain[0])
        sentences.append(
            f"{short_name(row.debias)} gives back most with {row.cue}: {points:+.1f} points where the cue says nothing."
        )
    return sentences


def answer_of(rows: Sequence[Stressed], learner: str) -> str:
    """Return on how many cues a learner leans, by the rows of its cues; no verdict below FEWEST seeds.

    Nothing is said of cues with which it has barely learned, but that.
    """
    barely = [row.cue for row in rows if row.barely_learned]
    if not barely:
        return leaning_of(rows, learner)
    told = [row for row in rows if not row.barely_learned]
    with_cues = f"with {listed(barely)}" if told else "with any cue"
    rest = (
        f"{learner} has barely learned {with_cues}: it is hardly better than a guess, so nothing can be said of what "
        "it leans on there. Raise the learning rate or --iterations first."
    )
    return f"{leaning_of(told, learner)} {rest}" if told else rest


def leaning_of(rows: Sequence[Stressed], learner: str) -> str:
    """Return on how many cues a learner leans that has learned something with each of them."""
    seeds = max(row.cost["n"] for row in rows)
    if seeds <= 1:
        return f"One seed cannot tell on which cues {learner} leans."
    if seeds < FEWEST:
        pointed = by_cost(rows, POINTS + LEANS)
        to = listed([f"{cue} ({points:.1f} points)" for points, cue in pointed]) if pointed else "no cue"
        return f"No verdict below {FEWEST} seeds; they point to {to}."
    judged = [row for row in rows if row.cost["n"] >= FEWEST]
    rest = len(rows) - len(judged)
    more = f"; no verdict yet on {rest} more, below {FEWEST} seeds" if rest else ""
    if found := by_cost(judged, LEANS):
        points, cue = found[0]
        of = counted(len(judged), "cue")
        return f"{learner} leans on {len(found)} of {of}; {cue} costs most, {points:.1f} points{more}."
    seen = points_seen([row.cost for row in judged], "the cue")
    power = f": {counted(seeds, 'seed')} would have seen {seen}" if seen else ""
    return f"No cue was found to cost {learner} anything{power}{more}."


def by_cost(rows: Sequence[Stressed], words: str) -> list[tuple[float, str]]:
    """Return the costs of which some words are true and their cues, the largest first."""
    return sorted(((row.cost["diff"] or 0.0, row.cue) for row in rows if leaning(row) == words), reverse=True)


def name_of(row: Stressed, several: bool) -> str:
    """Return the name of a row's learner; of several streams, with its stream."""
    debiased = "" if row.debias == NO_DEBIAS else f" with {short_name(row.debias)}"
    return short_name(row.method) + debiased + (f" on {short_name(row.data)}" if several else "")


# -- In tables --------------------------------------------------------------------------------------------------------


def stress_tables(rows: Sequence[Stressed], width: int | None = None) -> list[Table]:
    """Return what each cue costs every arm as a table, and what debiasing gives back as another, if there is any.

    They have the columns that `width` has room for; by default all of them.
    """
    several = len({row[:2] for row in rows}) > 1
    names = ("data", "method") if several else ()
    seeds = counted(max(row.biased.n for row in rows), "seed")
    of = seeds if several else f"{short_name(rows[0].method)} on {short_name(rows[0].data)}, {seeds}"
    debiased = [row for row in rows if row.debias != NO_DEBIAS]
    costs = Layout(
        (*names, "cue", "arm", "biased", "random", "it costs", "95% interval", "p (Holm)", "verdict"),
        sections(rows, cost_row),
        ("biased", "random"),
        f"What a cue costs: biased minus random ({of}; points of {FIGURE}, mean ± standard error)",
        "cues (for debiased arms, of cues times arms)" if debiased else "cues",
        cut=any_cut(row.cost for row in rows),
    )
    shown = [fitted(costs, width)]
    if gained := [row for row in debiased if row.given_back is not None]:
        gains = Layout(
            (*names, "cue", "arm", "given back", "95% interval", "p (Holm)", "verdict", "on biased", ON_BIASED),
            sections(gained, gain_row),
            (),
            f"What debiasing gives back on random, and changes on biased ({of}; points of {FIGURE})",
            "cues times arms",
            cut=any_cut(effect for row in gained for effect in (row.given_back, row.on_biased)),
        )
        shown.append(fitted(gains, width, ({ON_BIASED}, *SPARED, {"on biased"})))
    return shown


def sections(rows: Sequence[Stressed], row_of: Callable[[Stressed], Row]) -> list[list[Row]]:
    """Return the rows of a table by learner and cue."""
    by_cue: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        names = {
            "data": short_name(row.data),
            "method": short_name(row.method),
            "cue": row.cue,
            "arm": short_name(row.debias),
        }
        by_cue.setdefault(row[:3], []).append(names | row_of(row))
    return list(by_cue.values())


def cost_row(row: Stressed) -> Row:
    """Return the cells of what a cue costs an arm."""
    cells = effect_row(FIGURE, row.cost)
    means = {"biased": with_error(row.biased), "random": with_error(row.random)}
    return cells | means | {"it costs": cells["difference"], "verdict": leaning(row)}


def gain_row(row: Stressed) -> Row:
    """Return the cells of what debiasing gives back and changes."""
    assert row.given_back is not None
    assert row.on_biased is not None
    given_back, on_biased = effect_row(FIGURE, row.given_back), effect_row(FIGURE, row.on_biased)
    beside = {"on biased": on_biased["difference"], ON_BIASED: on_biased["95% interval"]}
    return given_back | beside | {"given back": given_back["difference"]}


def with_error(mean: Estimate) -> str:
    """Return a mean with its standard error, where there is one."""
    if mean.mean is None:
        return "-"
    return f"{mean.mean:.1f}" + ("" if mean.error is None else f" ± {mean.error:.1f}")
