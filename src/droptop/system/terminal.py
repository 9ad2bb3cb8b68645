"""All that is printed goes through here, and no name in it can steer the terminal (`escapes.py`).

`print` and rich's own consoles are not used elsewhere (`ruff` refuses them). A text is what it says: neither rich's
markup nor its emoji are looked for in it. A line break within a text is shown as one: who has several lines gives them
one by one.
"""

import sys
from typing import IO, Any

import rich.console
import rich.progress
from rich.text import Text

from droptop.escapes import visible


def say(*lines: str, file: IO[str] | None = None) -> None:
    """Print lines at once; to standard output, unless another file is named."""
    for line in lines:
        print(visible(line), file=file, flush=True)


def complain(text: str) -> None:
    """Print a line to standard error."""
    say(text, file=sys.stderr)


def note(text: str) -> None:
    """Print a note to standard error."""
    complain(f"note: {text}")


class Console(rich.console.Console):
    """Print texts and tables of rich."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return what is shown of a text: one that is printed, or stands in a table."""
        return super().render_str(visible(text), **options)


def folded(text: str, style: str = "") -> Text:
    """Return a text for a cell that breaks where it must rather than being cut."""
    return Text(visible(text), style=style, overflow="fold")


class TextColumn(rich.progress.TextColumn):
    """Show text beside a bar of progress."""

    def __init__(self, text: str, **options: Any) -> None:
        super().__init__(text, markup=False, **options)

    def render(self, task: rich.progress.Task) -> Text:
        """Return what is shown for a task."""
        shown = super().render(task)
        shown.plain = visible(shown.plain)
        return shown
