"""The first section of the page of a study of cues: what each cue costs, and what debiasing gives back."""

from collections.abc import Sequence
from dataclasses import replace

from droptop.report.page import charts
from droptop.report.page.content import Chart, Page, Row, Section
from droptop.report.stress import answer, leaning
from droptop.report.tables import said_of_cuts
from droptop.results.statistics import Effect, verdict
from droptop.results.stress import FIGURE, Stressed
from droptop.system.short_names import short_name

COLUMNS = ["kind", "learner", "cue", "arm", "diff", "low", "high", "p", "verdict", "n", "interval"]
KINDS = {
    "cost": "What a cue costs: biased minus random",
    "given back": "Given back on random, beside none",
    "on biased": "Changed on biased, beside none",
}


def lead_with_cues(page: Page, rows: Sequence[Stressed]) -> None:
    """Put the answer about cues first on a page; what led before follows it."""
    if page.answer is not None:
        page.sections.insert(0, replace(page.answer, name="debiasing"))
    page.headline, *page.findings = answer(rows)
    page.answer = section_of(rows)


def section_of(rows: Sequence[Stressed]) -> Section:
    """Return what each cue costs each arm, and what each debiaser gives back, as heat maps."""
    cells = [cell for row in rows for cell in cells_of(row)]
    limit = max((abs(cell[4]) for cell in cells if cell[4] is not None), default=1.0) or 1.0
    shown: list[Chart] = []
    for learner in dict.fromkeys(cell[1] for cell in cells):
        of_learner = [cell for cell in cells if cell[1] == learner]
        cues = list(dict.fromkeys(cell[2] for cell in of_learner))
        for kind, title in KINDS.items():
            if arms := list(dict.fromkeys(cell[3] for cell in of_learner if cell[0] == kind)):
                spec = charts.differences(title, cues, arms, limit, kind=kind, learner=learner)
                shown.append(Chart(f"{title}, {learner}", spec))
    effects = [effect for row in rows for effect in (row.cost, row.given_back, row.on_biased)]
    return Section(
        "answer",
        "What a cue costs, and what debiasing gives back",
        f"Points of {FIGURE}, paired by seed; verdicts after Holm's correction for the number of cues (of debiased "
        "arms, times arms). A cue costs what accuracy owes to it: where it is as in training (biased) minus "
        f"where it says nothing (random).{said_of_cuts(effects)}",
        COLUMNS,
        cells,
        shown,
        across=3,
    )


def cells_of(row: Stressed) -> list[Row]:
    """Return the differences of a row of results as rows of numbers, one of each kind."""
    kinds = {"cost": row.cost, "given back": row.given_back, "on biased": row.on_biased}
    return [
        cell_of(row, kind, effect, leaning(row) if kind == "cost" else verdict(FIGURE, effect))
        for kind, effect in kinds.items()
        if effect is not None
    ]


def cell_of(row: Stressed, kind: str, effect: Effect, words: str) -> Row:
    """Return one difference as a row of numbers."""
    low, high = effect["ci95"] or (None, None)
    learner = f"{short_name(row.method)} on {short_name(row.data)}"
    numbers = [effect["diff"], low, high, effect.get("p_holm", effect["p"])]
    interval = "" if low is None else f"{low:+.1f} to {high:+.1f}"
    return [kind, learner, row.cue, short_name(row.debias), *numbers, words, row.biased.n, interval]
