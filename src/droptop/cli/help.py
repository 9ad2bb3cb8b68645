"""The help of a command: plain text, made from the dataclass that the command's options are read into.

tyro writes one too, but only as a box in which all options are of equal weight and a default is what Python calls it.
"""

import dataclasses
import re
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from tyro.conf import Positional

from droptop.options import flag_of, help_of_fields
from droptop.system.terminal import say

ALL = "--help-all"
WORDS = ("-h", "--help", ALL)
POSITIONAL = get_args(Positional[str])[1]  # what tyro marks options by that have no flag
TAKES = {int: "N", float: "NUMBER", str: "NAME", Path: "PATH"}
# What texts and paths are, by the option's name, where these words do not say it.
TEXTS = {
    **dict.fromkeys(("by", "debias", "engines", "figures", "log", "methods", "names", "tests"), "NAMES"),
    **dict.fromkeys(("root", "maps"), "FOLDER"),
    **dict.fromkeys(("config", "export"), "FILE"),
    "address": "ADDRESS",
    "class_order": "ORDER",
    "colours": "COLOURS",
    "device": "DEVICE",
    "seeds": "N,N,...",
    "set": "NAME=VALUE,...",
    "split": "CLASSES",
    "weights": "WEIGHTS",
}
NARROW, WIDE = 60, 100  # columns: below the first an option's text stands under it; no line is longer than the second
FLAGS = 26  # columns for the options, at most


class Option(NamedTuple):
    """Hold what the help says of an option."""

    path: str  # by which a configuration knows it
    usage: str  # what to type: `--lr NUMBER`, or FOLDER where there is no flag
    about: str  # what it is, with its default
    has_flag: bool = True
    required: bool = False


def asked_for(tokens: Sequence[str]) -> bool:
    """Return whether the words of a command line ask for help."""
    return any(word in tokens for word in WORDS)


def options_of(kind: type, values: Any = None, prefix: str = "") -> list[Option]:
    """Return the options that a dataclass stands for, those of dataclasses within it included.

    Args:
        kind: The dataclass.
        values: An instance, whose values are shown as defaults; without it those of the class are.
        prefix: What the path of each option begins with.

    Returns:
        The options in the order of the fields, those without a flag first.
    """
    hints, about, options = get_type_hints(kind, include_extras=True), help_of_fields(kind), list[Option]()
    for field in dataclasses.fields(kind):
        path, hint = prefix + field.name, hints[field.name]
        value = field.default if values is None else getattr(values, field.name)
        if dataclasses.is_dataclass(value):
            options += options_of(type(value), value, f"{path}.")
            continue
        extras = getattr(hint, "__metadata__", ())
        text = next((extra.help for extra in extras if getattr(extra, "help", None)), about.get(field.name, ""))
        named = next((extra.metavar for extra in extras if getattr(extra, "metavar", None)), None)
        word, flag = named or word_for(hint, field.name), flag_of(path)
        has_flag, required = POSITIONAL not in extras, value is dataclasses.MISSING
        usage = f"{flag} {word}".rstrip() if has_flag else word if required else f"[{word}]"
        options.append(
            Option(path, usage, f"{text} {in_words(flag, value) if has_flag else ''}".strip(), has_flag, required)
        )
    return sorted(options, key=lambda option: option.has_flag)


def word_for(hint: Any, name: str) -> str:
    """Return what stands for a value of some type: `N` for an integer, `a|b` for a choice, nothing for a switch."""
    if hasattr(hint, "__metadata__"):
        hint = hint.__origin__
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    if get_origin(hint) is Literal:
        return "|".join(map(str, kinds))
    if kinds:
        return word_for(kinds[0], name)  # of `int | None`, int
    return TEXTS.get(name, TAKES[hint]) if hint in (str, Path) else TAKES.get(hint, "")


def in_words(flag: str, default: Any) -> str:
    """Return a sentence on a default; nothing where that is None or empty, of which the option's own text tells."""
    if default is dataclasses.MISSING:
        return "Required."
    if default is None or default is False or default in ("", ()):
        return ""
    if default is True:
        prefix, dot, last = flag.removeprefix("--").rpartition(".")
        return f"On by default; --{prefix}{dot}no-{last} turns it off."
    return f"Default: {default}."


def show(program: str, about: str, sections: Mapping[str, Sequence[Option]], below: str = "") -> None:
    """Print the help of a command on a page as wide as the terminal, or 80 columns in a pipe."""
    say(*page(program, about, sections, below, min(WIDE, shutil.get_terminal_size((80, 24)).columns)).split("\n"))


def page(program: str, about: str, sections: Mapping[str, Sequence[Option]], below: str, width: int) -> str:
    """Return the help of a command.

    Args:
        program: The words that call it.
        about: What it does: a phrase without a full stop.
        sections: Its options by heading; a heading may be empty.
        below: A paragraph below the options; none if empty.
        width: Columns of the page.

    Returns:
        The text, no line of which is wider, unless a word is.
    """
    listed = [option for options in sections.values() for option in options]
    words = [option.usage for option in listed if option.required or not option.has_flag]
    words += ["[options]"] if len(words) < len(listed) else []
    indent = min(FLAGS, max(len(option.usage) for option in listed) + 4) if width >= NARROW else 6
    blocks = [f"usage: {' '.join([program, *words])}", filled(f"{about[0].upper()}{about[1:]}.", width)]
    for heading, options in sections.items():
        if options:
            lines = [entry(option, width, indent) for option in options]
            blocks.append("\n".join([f"{heading}:"] * bool(heading) + lines))
    return "\n\n".join([*blocks, *([filled(below, width)] if below else [])])


def entry(option: Option, width: int, indent: int) -> str:
    """Return the lines of an option: what to type, and to its right, or below it, what that means."""
    text, start = filled(option.about, width, indent), f"  {option.usage}"
    return start + text[len(start) :] if len(start) <= indent - 2 else f"{start}\n{text}"


def filled(text: str, width: int, indent: int = 0) -> str:
    """Return a text in lines of some width; a word that is longer than a line goes on after one of its commas."""
    wrapper = textwrap.TextWrapper(width, " " * indent, " " * indent, break_long_words=False, break_on_hyphens=False)
    if max(map(len, text.split()), default=0) > width - indent:
        wrapper.wordsep_simple_re = re.compile(r"([\t\n ]+|(?<=,)(?=\S))")
    return wrapper.fill(text)
