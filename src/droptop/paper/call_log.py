"""OUT/paper.json: what was asked of each recipe in this folder, and when and where its cells ran.

The next call without options goes on with what was asked before; tables name the command, the machine and the date of
the run, not those of the day on which they were drawn.
"""

import json
from pathlib import Path
from typing import Any

from droptop.errors import BadRequest
from droptop.system.files import write_json

NAME = "paper.json"


def read(out: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((out / NAME).read_text()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        raise BadRequest(f"{out / NAME} cannot be read: {error}") from None


def asked(out: Path, recipe: str) -> dict[str, Any]:
    """The options a recipe was last called with."""
    return dict(read(out).get(recipe, {}).get("asked", {}))


def runs(out: Path, recipe: str) -> list[dict[str, str]]:
    """Every time that cells of it ran: date, machine, version."""
    return list(read(out).get(recipe, {}).get("runs", []))


def note(out: Path, recipe: str, options: dict[str, Any], run: dict[str, str] | None) -> None:
    """Writes down what is asked, and that something is about to run."""
    call_log = read(out)
    before = call_log.get(recipe, {"runs": []})
    call_log[recipe] = {"asked": options, "runs": [*before["runs"], *([run] if run else [])]}
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / NAME, call_log)
