"""Notes on stderr, beside what a command shows."""

import sys


def note(text: str) -> None:
    """Print what the user should know."""
    print(f"note: {text}", file=sys.stderr)
