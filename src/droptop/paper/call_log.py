"""OUT/paper.json: the options of each recipe's last call in this folder, and when and where its cells ran.

The next call without options goes on with these. Tables name the command, the machine and the date of the run, not
those of the day on which they were drawn.
"""

from pathlib import Path
from typing import Any

from droptop.errors import BadRequest
from droptop.system.files import write_json
from droptop.system.json_files import read_json

NAME = "paper.json"


def read(out: Path) -> dict[str, Any]:
    """Return the whole log, empty where there is none; raise BadRequest if it cannot be read."""
    try:
        return dict(read_json(out / NAME))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        raise BadRequest(f"{out / NAME} cannot be read: {error}") from None


def last_options(out: Path, recipe: str) -> dict[str, Any]:
    """Return the options of the recipe's last call."""
    return dict(read(out).get(recipe, {}).get("asked", {}))


def runs(out: Path, recipe: str) -> list[dict[str, str]]:
    """Return date and machine of every time that cells of the recipe ran."""
    return list(read(out).get(recipe, {}).get("runs", []))


def record(out: Path, recipe: str, options: dict[str, Any], run: dict[str, str] | None) -> None:
    """Write down the options of a call and, if given, the run that is about to start."""
    log = read(out)
    before = log.get(recipe, {"runs": []})
    log[recipe] = {"asked": options, "runs": [*before["runs"], *([run] if run else [])]}
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / NAME, log)
