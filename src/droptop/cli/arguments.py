"""From the words of a command line to a dataclass, by tyro; whatever is wrong with them is said in one line."""

import contextlib
import io
import re
from typing import TypeVar, get_type_hints

import tyro

from droptop.cli import help
from droptop.errors import BadRequest, meant
from droptop.options import flag_of

T = TypeVar("T")


def read(kind: type[T], tokens: list[str], program: str, about: str) -> T:
    """Return a dataclass from its flags; raise BadRequest, in one line, for what it does not take.

    Print the help instead, and exit, where the words ask for it.
    """
    if help.asked_for(tokens):
        help.show(program, about, {"": help.options_of(kind)})
        raise SystemExit(0)
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            return tyro.cli(kind, args=tokens, prog=program)
    except SystemExit as end:
        if end.code in (0, None):
            raise
        message = one_line(errors.getvalue())
        if match := re.match(r"Unrecognized options: ([^\s,=]+)", message):
            message = unknown(match[1], kind, program)
        raise BadRequest(message) from None


def one_line(box: str) -> str:
    """Return the message in tyro's error box, in our words; the box has no frame where the output is not in UTF-8."""
    lines = [line.strip("│ ") for line in box.splitlines() if line.startswith("│")]
    lines = lines or [line.strip() for line in box.splitlines()[2:]]
    rule = next((n for n, line in enumerate(lines) if line and not line.strip("─-")), len(lines))
    message = " ".join(lines[:rule])
    if match := re.match(r"Error parsing (--\S+): .*?('[^']*'|\S+)$", message):
        metavar = next((line.split()[-1] for line in lines[rule:] if line.startswith(match[1] + " ")), "another value")
        kinds = {"INT": "an integer", "FLOAT": "a number", "{None}|INT": "an integer"}
        return f"{match[1]} takes {kinds.get(metavar, metavar)}, not {match[2]}"
    if match := re.match(r"Missing from droptop [\w ]+: (\S+)", message):
        return f"{match[1]} is missing"
    if match := re.match(r"Missing value for argument '(--\S+)'", message):
        return f"{match[1]} takes a value"
    if match := re.match(r"invalid choice (\S+) for argument '(--\S+)'. Expected one of \((.*)\)", message):
        return f"{match[2]} takes one of {match[3]}, not {match[1]}"
    return message.rstrip(".")


def unknown(word: str, kind: type, program: str) -> str:
    """Return the message for a word that a command does not take, with the option that may have been meant."""
    hints = get_type_hints(kind, include_extras=True)
    options = [
        flag_of(name) for name, hint in hints.items() if help.POSITIONAL not in getattr(hint, "__metadata__", ())
    ]
    refused = f"takes no {word}" if word.startswith("-") else f"has no place for {word}"
    return f"{program} {refused}{meant(word, options) or f'; `{program} --help` says what it takes'}"


def names(text: str | None) -> list[str] | None:
    """Return the names in a text that separates them by commas; None where nothing was given."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
