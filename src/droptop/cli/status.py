"""`droptop status`: how far a study, a run or a comparison is. Loads neither torch nor a learner."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from rich.table import Table
from tyro.conf import Positional, arg

from droptop.cli import arguments
from droptop.report.tuning import answer
from droptop.runs.findings import Findings
from droptop.runs.folder import CONFIG, TUNE, TUNING, read_request, step_count
from droptop.runs.seed_files import SeedFiles
from droptop.sweeps.study_folder import HELD, StudyFolder, requested_cells
from droptop.sweeps.tuning.tune_json import FOUND, is_tuning, lines_of, read_found
from droptop.system.locks import is_locked
from droptop.system.terminal import Console, note


@dataclass(frozen=True, kw_only=True)
class StatusOptions:
    """Hold the options of `droptop status`."""

    folder: Annotated[Positional[Path], arg(metavar="FOLDER", help="A study, run, comparison or tuning.")]


def status(args: list[str], console: Console) -> int:
    """Print how far a study, a run or a comparison is; return the exit code."""
    folder = arguments.read(StatusOptions, args, "droptop status", "shows how far a run, comparison or study is").folder
    if (folder / "study.toml").is_file():
        return study_status(folder, console)
    if tunings := tunings_of(folder):
        for place in tunings:
            console.print(tuning_line(place), soft_wrap=True)
            for line in lines_of(place):
                note(line)
        return 0
    request, findings = read_request(folder), Findings(folder)
    table = Table("run", "seed", "state", "step", title=str(folder))
    for run in request.arms:
        for seed in run.seeds:
            files = SeedFiles(run, seed)
            steps = step_count(run.path, seed) if files.fits(files.folder / "metrics.jsonl") else 0
            table.add_row(run.name, str(seed), state_of(files), str(steps or "-"))
            findings.add(files)
    console.print(table)
    for line in findings.lines():
        note(line)
    return 0


def tunings_of(folder: Path) -> list[Path]:
    """Return the tunings that a folder is, or that a comparison is still at; none where all arms are tuned."""
    if is_tuning(folder):
        return [folder]
    if (folder / CONFIG).exists():
        return []
    return sorted(path.parent for path in (folder / TUNING).glob(f"*/{TUNE}"))


def tuning_line(folder: Path) -> str:
    """Return how far a tuning is, in one line."""
    held = "" if is_locked(folder, HELD) else "; no command is at work"
    if not (folder / FOUND).is_file():
        return f"{folder}: no trial has ended{held}"
    found = read_found(folder)
    return f"{folder}: {answer(found)[0].rstrip('.')}{'' if 'chosen' in found else held}"


def state_of(files: SeedFiles) -> str:
    """Return the state of a seed in one word: done, running, damaged, stopped or waiting."""
    if files.result is not None:
        return "done"
    if is_locked(files.folder):
        return "running"
    if files.unfit:
        return "damaged"
    return "stopped" if (files.folder / "metrics.jsonl").exists() else "waiting"


def study_status(folder: Path, console: Console) -> int:
    """Print how many cells of a study are done, and why others failed; return the exit code."""
    study = StudyFolder(folder, note)
    cells = set(requested_cells(folder))
    running = set(study.running()) & cells
    counts, held, pace = study.counts(cells - running), is_locked(folder, HELD), study.pace()
    lines = [
        f"{folder}: {counts['done']} done, {len(running)} running, {counts['waiting']} waiting, {counts['failed']} "
        f"failed{'' if held else '; no sweep is at work'}"
    ]
    if held and pace is not None:
        left = timedelta(seconds=round(pace * (counts["waiting"] + len(running))))
        lines.append(f"about {left} left at the pace of the last cells")
    if others := len(study.cells.keys() - cells):
        lines.append(f"{others} more cells are of earlier versions of the study")
    names = study.names()
    for cell, error in study.failures():
        if cell not in cells:
            continue
        why = error.strip().splitlines()[-1]
        lines.append(
            f"failed: {names.get(cell.run, cell.run)}, seed {cell.seed}: {why} (runs/{cell.run}/seed-{cell.seed}"
            "/failed.json)"
        )
    console.print(*lines, sep="\n", soft_wrap=True)
    for line in study.lines():
        note(line)
    return 0
