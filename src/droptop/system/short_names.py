"""Names as people are told of them: a path becomes its last part, since a title has no room for the others.

folder:/data/mine/images     -> folder:images, and csv: and hf: likewise
/x/my_method.py:Mine         -> my_method:Mine
droptop+/x/my_debias.py      -> droptop+my_debias
"""

import re
from collections.abc import Iterable
from pathlib import Path

from droptop.system.handed import OBJECT

PATHS = re.compile(r"(folder:|csv:|hf:(?=/))(.*)")
PYTHON_FILE = re.compile(r"(?:^|(?<=\+))(/[^:]*?|[^/+:][^+:]*?)\.py(?=[:+]|$)")  # alone, or beside others


def short_name(text: str, parts: int = 1) -> str:
    """Return the name that titles, tables and charts show for a stream, a method, a debiasing or a path.

    It has as many of the last parts of a path as asked for; a name without a path is returned as it is.
    """
    text = text.removeprefix(OBJECT)
    if found := PATHS.fullmatch(text):
        return found[1] + _end(found[2], parts)
    if PYTHON_FILE.search(text):
        return PYTHON_FILE.sub(lambda found: _end(found[1], parts), text)
    return _end(text, parts) if text.startswith("/") else text


def short_names(texts: Iterable[str]) -> dict[str, str]:
    """Return the short names of the texts of one table, by text, with as much of a path as tells them apart."""
    parts = dict.fromkeys(texts, 1)
    while True:
        names = {text: short_name(text, count) for text, count in parts.items()}
        shown = list(names.values())
        longer = [
            text for text, name in names.items() if shown.count(name) > 1 and short_name(text, parts[text] + 1) != name
        ]
        if not longer:
            return names
        parts |= {text: parts[text] + 1 for text in longer}


def _end(path: str, parts: int) -> str:
    """Return the last parts of a path."""
    return "/".join([part for part in Path(path).parts if part != "/"][-parts:]) or path
