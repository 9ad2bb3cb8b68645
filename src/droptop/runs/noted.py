"""What environment.json says of a run: where it began and went on, and the flags that make it again."""

import hashlib
import shlex
from pathlib import Path
from typing import Any

from droptop import __version__
from droptop.system.files import sha256
from droptop.system.json_files import read_json

PRESETS = 2  # counts the changes of presets between versions, after which recorded flags no longer make the same run


def environments(run: Path) -> list[dict[str, Any]]:
    """Return the environment of a run's start, then of each continuation; [] where nothing readable was recorded."""
    try:
        first = read_json(run / "environment.json")
        later = first.pop("later", [])
        noted = [first, *(first | changed for changed in later)]
        return noted if all(map(is_environment, noted)) else []
    except (OSError, ValueError, AttributeError, TypeError):
        return []


def is_environment(noted: dict[str, Any]) -> bool:
    """Return whether an environment has values that can be shown, and versions by package."""
    versions = noted.get("versions", {})
    values = [value for name, value in noted.items() if name != "versions"]
    return isinstance(versions, dict) and all(
        value is None or isinstance(value, str | int | float) for value in (*values, *versions.values())
    )


def recorded_flags(run: Path) -> list[str] | None:
    """Return the flags that make a run again, as environment.json records them for its config.toml.

    None where nobody recorded them, or config.toml has changed since, or another version of droptop recorded them:
    then whoever needs them loads the configuration.
    """
    try:
        record = read_json(run / "environment.json")
        flags = record["flags"]
        holds = (flags_hold_for(run, flags), flags_hold_for(run))  # the second in folders of earlier versions
        return shlex.split(flags) if record["flags_hold_for"] in holds else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def flags_hold_for(run: Path, flags: str = "") -> str:
    """Return what a run's flags depend on: its config.toml, and the version of droptop and of its presets.

    The SHA-256 of the flags themselves stands beside it.
    """
    own = f", flags with SHA-256 {hashlib.sha256(flags.encode()).hexdigest()}" if flags else ""
    return f"droptop {__version__}, presets {PRESETS}, config.toml with SHA-256 {sha256(run / 'config.toml')}{own}"
