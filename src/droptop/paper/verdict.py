"""Whether a claim of the paper reproduces: one word, by one rule, for every table.

A figure is reproduced where our paired difference lies on the paper's side of 0, its 95% interval excludes 0, and that
interval reaches the paper's difference; partly where it excludes 0 on the paper's side and falls short of it. Where the
paper's own difference is below two of its standard errors there is no claim: nothing to reproduce, nothing to refute.
Tables say so in a note, `tables.VERDICT`.
"""

from collections.abc import Sequence
from math import hypot
from typing import Literal

from droptop.paper.tables import Difference, Mean

Verdict = Literal["reproduced", "partly", "not reproduced", "no claim", "cannot tell"]
CLAIMED = 2  # standard errors from which on a difference of the paper's is a claim


def gap(before: Mean | None, after: Mean | None) -> Mean | None:
    """Return the paper's difference of two figures, rounded to their decimal; None where one of them is unknown.

    It has a standard error where both figures have one.
    """
    if before is None or after is None or before.mean is None or after.mean is None:
        return None
    unknown = before.error is None or after.error is None
    return Mean(round(after.mean - before.mean, 1), None if unknown else hypot(before.error or 0, after.error or 0))


def judge(paper: Mean, ours: Difference) -> Verdict:
    """Return the verdict on one figure, given the difference that the paper reports.

    It is "no claim" where the paper's difference is below two of its own standard errors, if it gives them.
    """
    assert paper.mean is not None
    if paper.error is not None and abs(paper.mean) < CLAIMED * paper.error:
        return "no claim"
    if ours.diff is None or ours.low is None or ours.high is None:
        return "cannot tell"
    side = 1 if paper.mean >= 0 else -1
    near, far = sorted((side * ours.low, side * ours.high))
    if near <= 0:
        return "not reproduced"
    return "reproduced" if far >= abs(paper.mean) else "partly"


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on several figures, such as accuracy and forgetting, from those that are claims."""
    claimed = {verdict for verdict in verdicts if verdict != "no claim"}
    if verdicts and not claimed:
        return "no claim"
    if not verdicts or "cannot tell" in claimed:
        return "cannot tell"
    return claimed.pop() if len(claimed) == 1 else "partly"
