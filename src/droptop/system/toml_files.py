"""TOML files of options: reading, and writing so that they run again."""

import tomllib
from pathlib import Path
from typing import Any

import tomli_w

from droptop.errors import BadRequest


def toml_line(name: str, value: Any) -> str:
    """Return an option as a line of TOML."""
    return tomli_w.dumps({name: value})


def toml_text(options: dict[str, Any]) -> str:
    """Return options by path as TOML, a table per section."""
    tables: dict[str, Any] = {}
    for path, value in options.items():
        *sections, name = path.split(".")
        table = tables
        for section in sections:
            table = table.setdefault(section, {})
        table[name] = value
    return tomli_w.dumps(tables)


def read_toml(path: Path) -> dict[str, Any]:
    """Return a file's options by path, tables opened."""
    return leaves(read_tables(path))


def read_tables(path: Path) -> dict[str, Any]:
    """Return what a TOML file says; refuse one that is missing, unreadable or not TOML."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise BadRequest(f"{path} is not there") from None
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadRequest(f"{path} is not TOML: {error}") from None


def leaves(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a table's values by path, tables within it opened."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        flat |= leaves(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
