"""`droptop status`: how far a study, a run or a comparison is. Loads neither torch nor a learner."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from rich.table import Table
from tyro.conf import Positional, arg

from droptop.cli import arguments
from droptop.runs.folder import RunFolder, read_request, seed_folder, step_count, whole_result
from droptop.sweeps.study_folder import HELD, StudyFolder, requested_cells
from droptop.system.locks import is_locked
from droptop.system.terminal import Console, note


@dataclass(frozen=True, kw_only=True)
class StatusOptions:
    """Hold the options of `droptop status`."""

    folder: Annotated[Positional[Path], arg(metavar="FOLDER", help="A study, run or comparison.")]


def status(args: list[str], console: Console) -> int:
    """Print how far a study, a run or a comparison is; return the exit code."""
    folder = arguments.read(StatusOptions, args, "droptop status", "shows how far a run, comparison or study is").folder
    if (folder / "study.toml").is_file():
        return study_status(folder, console)
    request = read_request(folder)
    table = Table("run", "seed", "state", "step", title=str(folder))
    for run in request.arms:
        for seed in run.seeds:
            table.add_row(run.name, str(seed), state_of(run, seed), str(step_count(run.path, seed) or "-"))
    console.print(table)
    return 0


def state_of(run: RunFolder, seed: int) -> str:
    """Return the state of a seed in one word: done, running, stopped or waiting."""
    place = seed_folder(run.path, seed)
    if whole_result(run.path, seed):
        return "done"
    if is_locked(place):
        return "running"
    return "stopped" if (place / "metrics.jsonl").exists() else "waiting"


def study_status(folder: Path, console: Console) -> int:
    """Print how many cells of a study are done, and why others failed; return the exit code."""
    study = StudyFolder(folder, note=note)
    cells = requested_cells(folder)
    running = set(study.running()) & set(cells)
    counts, held, pace = study.counts(set(cells) - running), is_locked(folder, HELD), study.pace()
    lines = [
        f"{folder}: {counts['done']} done, {len(running)} running, {counts['waiting']} waiting, {counts['failed']} "
        f"failed{'' if held else '; no sweep is at work'}"
    ]
    if held and pace is not None:
        left = timedelta(seconds=round(pace * (counts["waiting"] + len(running))))
        lines.append(f"about {left} left at the pace of the last cells")
    if others := len(study.cells.keys() - set(cells)):
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
    return 0
