"""Check all files of a tuning: its runs, and whether tune.json says what they reached."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from droptop.errors import BadRequest
from droptop.runs.findings import Findings
from droptop.runs.folder import TUNE, whole_result
from droptop.runs.verify import Checked
from droptop.sweeps.tuning.tune_json import (
    BEST,
    FOUND,
    choose,
    edited_lines,
    figure,
    gone_lines,
    read_found,
    trial_folder,
)
from droptop.sweeps.verify_study import verify_runs


def verify_tuning(out: Path) -> Iterator[Checked]:
    """Yield what is found of every run of a tuning, then of the tuning itself."""
    findings, whole = Findings(out), Checked(str(out))
    yield from verify_runs(out, findings)
    whole.problems += edited_lines(out) + findings.problems() + found_problems(out)
    for name in (TUNE, FOUND, BEST):
        whole.count(out / name)
    yield whole


def found_problems(out: Path) -> list[str]:
    """Return what is wrong with tune.json: damage, figures that runs have not reached, a choice that is none."""
    path = out / FOUND
    if not path.is_file():
        return gone_lines(out)
    try:
        found = read_found(out)
        return [f"{path}: {line}" for line in differing(out, found)]
    except BadRequest as error:
        return [str(error)]
    except (ValueError, TypeError, LookupError, AttributeError):
        return [f"{path} is damaged"]


def differing(out: Path, found: dict[str, Any]) -> Iterator[str]:
    """Yield a line per figure in tune.json that is not that of its run, and one for a choice that is not the best."""
    for trial in found["trials"]:
        result = whole_result(trial_folder(out, trial["number"]), found["seed"])
        if trial["state"] == "done" and result is not None and trial["value"] != figure(result):
            yield f"trial {trial['number']} reached {figure(result):.2f}, not {trial['value']:.2f}"
    for each in found["confirmed"]:
        results = [whole_result(out / "runs" / each.name, seed) for seed in found["fresh"]]
        reached = [figure(result) for result in results if result is not None]
        if reached != list(each.values):
            yield f"{each.name} did not reach on fresh seeds what is said of it"
    if "chosen" in found and found["chosen"]["name"] != choose(found["confirmed"]).name:
        yield f"{found['chosen']['name']} is not the best of those that were confirmed"
