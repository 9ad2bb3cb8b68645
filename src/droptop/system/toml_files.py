"""TOML files of options: read them, and write them so that they can be read again."""

import tomllib
from pathlib import Path
from typing import Any

import tomli_w

from droptop.errors import BadRequest


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


def read_toml(path: Path) -> dict[str, Any]:
    """Return the options of a TOML file by path; refuse what `read_tables` refuses."""
    return leaves(read_tables(path))


def read_tables(path: Path) -> dict[str, Any]:
    """Return the nested tables of a TOML file; refuse one that is missing, unreadable or not TOML."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise BadRequest(f"{path} is not there") from None
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadRequest(f"{path} is not TOML: {error}") from None


def leaves(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of nested tables by path, such as `net.width`."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        flat |= leaves(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
