"""What a comparison has beside its runs: what their summaries come to, how arms were tuned, what a step of them costs.

A file that is not what the folder's manifest says is left out; `unfit` names it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from droptop.results.checks import every, expect
from droptop.results.diagnosis import diagnosed
from droptop.results.statistics import compare
from droptop.runs.folder import TUNED
from droptop.runs.manifest import Unfit, read_manifest
from droptop.system.json_files import is_number, parse_json, read_bytes
from droptop.system.sealed_json import unsealed


def compared(out: Path, summaries: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what compare.json has, by the summaries of arms, the reference first."""
    tuned = read_tuned(out)
    return diagnosed(compare(dict(summaries))) | ({"tuning": tuned} if tuned else {})


def read_tuned(out: Path) -> dict[str, Any] | None:
    """Return how the arms of a comparison were tuned, as tuned.json has it; None where it is not there, or unfit."""
    path = out / TUNED
    try:
        data = read_bytes(path)
        if (manifest := read_manifest(out)) is not None and path.name in manifest.files:
            manifest.check(path, path.name, data)
        tuned = unsealed(data)
        every([tuned["trials"], tuned["hold_out"]], is_number, "trials")
        every(expect(dict, tuned["over"], "over").values(), lambda text: isinstance(text, str), "over")
        arms = expect(dict, tuned["arms"], "arms")
        for arm in arms.values():
            for name in ("settings", "usual"):
                expect(dict, expect(dict, arm, "arms")[name], name)
            every([arm.get("confirmed", {"mean": 0})["mean"]], is_number, "confirmed")
        every([tuned["for"]], lambda only: only is None or only in arms, "for")
        return tuned
    except (OSError, ValueError, TypeError, LookupError, Unfit):
        return None


def read_costs(out: Path) -> dict[str, dict[str, float]]:
    """Return what a step of every arm costs, as cost.json has it; empty where that was not measured, or is unfit."""
    path = out / "cost.json"
    try:
        data = read_bytes(path)
        if (manifest := read_manifest(out)) is not None:
            manifest.check(path, path.name, data)
        costs = parse_json(data)
        if not all(is_number(cost[name]) for cost in costs.values() for name in ("passes", "ms")):
            raise ValueError
        return {str(arm): {name: float(cost[name]) for name in ("passes", "ms")} for arm, cost in costs.items()}
    except (OSError, ValueError, TypeError, LookupError, AttributeError, Unfit):
        return {}


def unfit(out: Path) -> list[str]:
    """Return a line for each of these files that is there and is not shown, since it is not what was written."""
    found = {"cost.json": read_costs(out), TUNED: read_tuned(out)}
    return [
        f"{out / name} is not what was measured: left out"
        for name, content in found.items()
        if (out / name).exists() and not content
    ]
