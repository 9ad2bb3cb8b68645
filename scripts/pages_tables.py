"""Options as a table of Markdown, as `--help-all` has them."""

import dataclasses
from typing import Any

from droptop.options import flag_of, help_of_fields


def table(title: str, settings: Any, prefix: str) -> str:
    """Return the options of a dataclass under a title, with those of dataclasses within it."""
    return "\n".join([f"### {title}", "", "| option | default here | |", "|---|---|---|", *rows(settings, prefix)])


def rows(settings: Any, prefix: str) -> list[str]:
    """Return a row per option; `prefix` begins the path of each."""
    about, found = help_of_fields(type(settings)), list[str]()
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            found += rows(value, f"{prefix}{field.name}.")
        else:
            found.append(f"| `{flag_of(prefix + field.name)}` | {default(value)} | {cell(about[field.name])} |")
    return found


def default(value: Any) -> str:
    """Return a default as it stands in a table; nothing for None, of which the option's text tells."""
    return "" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def cell(text: str) -> str:
    """Return a text as a cell of a table."""
    return text.replace("|", "\\|")
