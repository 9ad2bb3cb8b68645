"""Which test sets lack the cue that training images have: what a stream says, else what the names of the sets say."""

import re
from collections.abc import Iterable
from typing import Any

# "no" takes a hyphen after it, or one of these words: `normal`, `noise` and `north` say nothing of a cue.
NAMED = "cue|shortcut|bias|logo|text|tag|mark|watermark|sticker|frame|colou?r|background|bg|frequency"
LACKING = re.compile(rf"(test[-_ ])?(without|removed|random|no([-_ ]|({NAMED})s?$))", re.IGNORECASE)


def cue_by_name(tests: Iterable[str]) -> dict[str, bool]:
    """Return which test sets have the cue (True) and which lack it (False), as far as their names say so.

    Those lack it whose name begins with no-, without, removed or random, such as `no-logo` (or `nologo`). The first of
    the others has it. Of the rest nobody knows: they may be harder for any reason.
    """
    names = list(tests)
    first = next((name for name in names if not LACKING.match(name)), None)
    return {name: name == first for name in names if name == first or LACKING.match(name)}


def cue_of(summary: dict[str, Any]) -> dict[str, bool]:
    """Return which test sets of a summary have the cue and which lack it; by name where results do not say it."""
    said = {test: has for test, has in summary.get("cue", {}).items() if test in summary["tests"]}
    return said or cue_by_name(summary["tests"])


def sets_without_cue(summary: dict[str, Any]) -> list[str]:
    """Return the test sets known to lack a cue that another one has; [] where none is."""
    has = cue_of(summary)
    return [test for test, with_cue in has.items() if not with_cue] if any(has.values()) else []
