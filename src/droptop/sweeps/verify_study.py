"""Check all files of a study: its cells, run by run, and the list of them."""

from collections.abc import Iterator
from pathlib import Path

from droptop.errors import BadRequest
from droptop.runs.findings import Findings
from droptop.runs.folder import read_request
from droptop.runs.verify import Checked, check_summary, verify_run
from droptop.sweeps.study_folder import edited_lines


def verify_study(study: Path) -> Iterator[Checked]:
    """Yield what is found of every run of a study, then of the study itself; refuse what is not a study."""
    if not (study / "study.toml").is_file():
        raise BadRequest(f"{study} is not a study: it has no study.toml")
    findings, whole = Findings(study), Checked(str(study))
    yield from verify_runs(study, findings)
    whole.problems += edited_lines(study)
    whole.problems += findings.problems()
    for name in ("study.toml", "cells.json"):
        whole.count(study / name)
    yield whole


def verify_runs(folder: Path, findings: Findings) -> Iterator[Checked]:
    """Yield what is found of every run folder in `runs`, of a study or of a tuning."""
    for place in sorted(path for path in (folder / "runs").glob("*") if path.is_dir()):
        try:
            run = read_request(place).arms[0]
        except BadRequest as error:
            yield Checked(place.name, problems=[f"{place} cannot be read: {error}"])
            continue
        checked = verify_run(run, findings)
        check_summary(run, checked)
        checked.name = place.name
        yield checked
