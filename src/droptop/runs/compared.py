"""What a comparison comes to: its arms' summaries beside each other, and how the arms were tuned, where they were."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from droptop.results.checks import every, expect
from droptop.results.diagnosis import diagnosed
from droptop.results.statistics import compare
from droptop.runs.folder import TUNED
from droptop.runs.manifest import Unfit, read_manifest
from droptop.system.json_files import is_number, parse_json, read_bytes


def compared(out: Path, summaries: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what compare.json has, by the summaries of arms, the reference first."""
    tuned = read_tuned(out)
    return diagnosed(compare(dict(summaries))) | ({"tuning": tuned} if tuned else {})


def read_tuned(out: Path) -> dict[str, Any] | None:
    """Return how the arms of a comparison were tuned, as tuned.json has it; None where it is not there, or unfit."""
    path = out / TUNED
    try:
        data = read_bytes(path)
        if (manifest := read_manifest(out)) is not None:
            manifest.check(path, path.name, data)
        tuned: dict[str, Any] = expect(dict, parse_json(data), "it")
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
