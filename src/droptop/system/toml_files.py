"""TOML files of options: read them, write them so that they can be read again, and tell whether they were edited.

What droptop writes ends with a comment that has the SHA-256 of all before it. So the file says by itself whether it is
as it was written, and there is no moment at which it does not.
"""

import hashlib
import tomllib
from pathlib import Path
from typing import Any

import tomli_w

from droptop.errors import BadRequest
from droptop.system.json_files import check_depth, read_bytes

MOST_BYTES = 1 << 22
MOST_DOTS = 2000  # in a line: tomllib's time grows with the square of a key's parts
SEAL = "# SHA-256 of what stands above: "


def toml_line(name: str, value: Any) -> str:
    """Return an option as one line of TOML."""
    return tomli_w.dumps({name: value})


def toml_text(options: dict[str, Any], tables: dict[str, Any] | None = None) -> str:
    """Return options by path as TOML, with a table per section, then tables that are nested already."""
    return tomli_w.dumps(nested(options) | (tables or {}))


def nested(options: dict[str, Any]) -> dict[str, Any]:
    """Return options by path as nested tables, one per section."""
    tables: dict[str, Any] = {}
    for path, value in options.items():
        *sections, name = path.split(".")
        table = tables
        for section in sections:
            table = table.setdefault(section, {})
        table[name] = value
    return tables


def read_tables(path: Path) -> dict[str, Any]:
    """Return the nested tables of a TOML file; refuse one that is missing, unreadable, not TOML, or beyond limits."""
    try:
        return parse_toml(read_bytes(path, MOST_BYTES).decode())
    except FileNotFoundError:
        raise BadRequest(f"{path} is not there") from None
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise BadRequest(f"{path} is not TOML: {error}") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Return the nested tables of TOML; raise ValueError if it is none, or nested too deeply."""
    if any(line.count(".") > MOST_DOTS for line in text.splitlines()):
        raise ValueError("it is nested too deeply")
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    check_depth(tables)
    return tables


def sealed(text: str) -> str:
    """Return a text with its SHA-256 in a comment at its end."""
    text = without_seal(text)
    text += "" if text.endswith("\n") else "\n"
    return f"{text}{SEAL}{hashlib.sha256(text.encode()).hexdigest()}\n"


def without_seal(text: str) -> str:
    """Return a text without the comment that `sealed` adds."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(SEAL)) if SEAL in text else text


def seal_holds(path: Path) -> bool | None:
    """Return whether a file is as droptop wrote it; None where it has no seal, or cannot be read."""
    try:
        text = read_bytes(path, MOST_BYTES).decode()
    except (OSError, ValueError):
        return None
    return sealed(text) == text if SEAL in text else None


def leaves(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of nested tables by path, such as `net.width`."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        flat |= leaves(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
