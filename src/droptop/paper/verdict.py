"""Does a claim of the paper reproduce? One word, by one rule, for every table.

A figure is reproduced where our paired difference lies on the paper's side of 0, its 95% interval excludes 0, and that
interval reaches the paper's difference; partly where it excludes 0 on the paper's side and falls short of it. Tables
say so in a note, `exhibits.VERDICT`.
"""

from collections.abc import Sequence
from typing import Literal

from droptop.paper.exhibits import Difference

Word = Literal["reproduced", "partly", "not reproduced", "cannot tell"]


def word(paper: float, ours: Difference) -> Word:
    """The verdict on one figure, given the difference that the paper reports."""
    if ours.diff is None or ours.low is None or ours.high is None:
        return "cannot tell"
    side = 1 if paper >= 0 else -1
    near, far = sorted((side * ours.low, side * ours.high))
    if near <= 0:
        return "not reproduced"
    return "reproduced" if far >= abs(paper) else "partly"


def together(words: Sequence[Word]) -> Word:
    """The verdict on a claim of several figures, such as accuracy and forgetting."""
    if not words or "cannot tell" in words:
        return "cannot tell"
    return words[0] if len(set(words)) == 1 else "partly"
