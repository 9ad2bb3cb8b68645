"""`droptop sweep | status | results`: studies of many runs."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table
from tyro.conf import Positional, arg

from droptop.cli import flags
from droptop.engine.pool import Job
from droptop.engine.run import arms, load
from droptop.errors import BadRequest, require, typed
from droptop.report import tables
from droptop.results.folder import is_locked, seed_folder, whole_result
from droptop.study import sweep as study
from droptop.study.index import Index
from droptop.study.local import local
from droptop.study.results import FIGURES, also_varied, export, rows


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    out: Path
    """Folder of the study, new or one to go on with."""
    engine: Literal["local", "ray", "submitit"] = "local"
    """Where cells run: on this machine, on a Ray cluster, or as Slurm jobs."""
    address: str | None = None
    """Address of a Ray cluster; one is started on this machine unless told."""
    cpus: float = 1.0
    """Cores a cell, for Ray and Slurm."""
    gpus: float = 0.0
    """GPUs a pack of cells, for Ray (fractions share one) and Slurm."""
    minutes: int = 240
    """Time limit of a Slurm job."""

    def __post_init__(self) -> None:
        require(self.cpus > 0, "cpus", "a number above 0", self.cpus)
        require(self.gpus >= 0, "gpus", "a number from 0", self.gpus)
        require(self.minutes >= 1, "minutes", "a number from 1", self.minutes)
        require(self.address is None or self.engine == "ray", "address", "--engine ray beside it", self.engine)

    def start(self) -> study.Engine:
        """The engine, ready to take cells."""
        if self.engine == "ray":
            from droptop.study.on_ray import on_ray

            return on_ray(self.address, self.cpus, self.gpus)
        if self.engine == "submitit":
            from droptop.study.on_slurm import on_slurm

            return on_slurm(self.out, self.minutes, self.cpus, self.gpus)
        return local


@dataclass(frozen=True, kw_only=True)
class SweepOptions(EngineOptions):
    study: Annotated[
        Positional[Path | None], arg(metavar="STUDY.toml", help="The grid; unless told, the one the folder holds.")
    ] = None


def sweep(args: list[str], console: Console) -> int:
    options = flags.read(SweepOptions, args, "droptop sweep", "runs what is missing of a study")
    try:
        with Watch(console) as watcher:
            counts = study.sweep(options.study, options.out, options.start(), watcher)
    except KeyboardInterrupt:
        begun = (options.out / "study.toml").exists()
        how = f"; {typed('sweep', '--out', options.out)} continues" if begun else ""
        print(f"droptop: interrupted{how}", file=sys.stderr)
        return 130
    console.print(
        f"{counts['done']} cells done, {counts['failed']} failed; {typed('results', options.out)} shows what "
        "they found",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    if counts["failed"] or counts["waiting"]:
        print(
            f"droptop: {counts['failed']} cells failed and {counts['waiting']} are not done; "
            f"{typed('status', options.out)} says why",
            file=sys.stderr,
        )
        return 1
    return 0


class Watch:
    """A bar in a terminal, a line a cell elsewhere."""

    def __init__(self, console: Console) -> None:
        self.live = console.is_terminal
        self.bars = Bars(
            TextColumn("cells"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not self.live,
        )
        self.bar, self.total = self.bars.add_task("", total=None), 0

    def __enter__(self) -> "Watch":
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def start(self, done: int, total: int) -> None:
        self.total = total
        self.bars.update(self.bar, total=total, completed=done)
        if not self.live:
            print(f"{done} of {total} cells are done", flush=True)

    def cell(self, job: Job, status: str, done: int, failed: int) -> None:
        self.bars.update(self.bar, completed=done, description=f"{failed} failed" if failed else "")
        if not self.live:
            print(f"{done}/{self.total}  {job.run.name} seed {job.seed}: {status}", flush=True)

    def note(self, text: str) -> None:
        self.bars.console.print(f"note: {text}", markup=False, highlight=False)


# -- How far it is ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StatusOptions:
    folder: Annotated[Positional[Path], arg(metavar="FOLDER", help="A study, run or comparison.")]


def status(args: list[str], console: Console) -> int:
    folder = flags.read(StatusOptions, args, "droptop status", "how far a study or a run is").folder
    if (folder / "study.toml").is_file():
        return study_status(folder, console)
    command, config = load(folder)
    table = Table("run", "seed", "state", "step", title=str(folder))
    for run, arm in arms(command, config, folder).items():
        for seed in arm.seeds:
            place = seed_folder(run, seed)
            state = (
                "done"
                if whole_result(run, seed)
                else "running"
                if is_locked(place)
                else "stopped"
                if (place / "metrics.jsonl").exists()
                else "waiting"
            )
            table.add_row(arm.options.debias, str(seed), state, str(steps_of(place / "metrics.jsonl") or "-"))
    console.print(table)
    return 0


def steps_of(metrics: Path) -> int:
    try:
        with metrics.open("rb") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    except OSError:
        return 0


def study_status(folder: Path, console: Console) -> int:
    index = Index(folder, note=lambda text: print(f"note: {text}", file=sys.stderr))
    cells = study.asked(folder)
    running = set(index.running()) & set(cells)
    counts, held, pace = index.counts(set(cells) - running), is_locked(folder, study.HELD), index.pace()
    say = [
        f"{folder}: {counts['done']} done, {len(running)} running, {counts['waiting']} waiting, {counts['failed']} "
        f"failed{'' if held else '; no sweep is at work'}"
    ]
    if held and pace is not None:
        left = timedelta(seconds=round(pace * (counts["waiting"] + len(running))))
        say.append(f"about {left} left at the pace of the last cells")
    if others := len(index.statuses().keys() - set(cells)):
        say.append(f"{others} more cells are of earlier versions of the study")
    names = index.names()
    for cell, error in index.failures():
        if cell not in cells:
            continue
        why = error.strip().splitlines()[-1]
        say.append(
            f"failed: {names.get(cell.run, cell.run)}, seed {cell.seed}: {why} (runs/{cell.run}/seed-{cell.seed}"
            "/failed.json)"
        )
    console.print("\n".join(say), highlight=False, markup=False, soft_wrap=True)
    return 0


# -- What it found ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ResultsOptions:
    folder: Annotated[Positional[Path], arg(metavar="FOLDER", help="A study's folder.")]
    by: str = "data,method,debias"
    """Options to group by, separated by commas; with seed among them, a row a seed."""
    figures: str = ",".join(FIGURES)
    """Figures to show, separated by commas."""
    tests: str = ""
    """Test sets to show, separated by commas; all unless told."""
    export: Path | None = None
    """A .csv or .parquet file to write the rows to as well."""


def results(args: list[str], console: Console) -> int:
    options = flags.read(ResultsOptions, args, "droptop results", "what a study found")
    if not (options.folder / "study.toml").is_file():
        shown = f"; {typed('report', options.folder)} shows a run or comparison"
        raise BadRequest(
            f"{options.folder} is no study: it has no study.toml"
            f"{shown if (options.folder / 'config.toml').is_file() else ''}"
        )
    by, figures = names(options.by), names(options.figures)
    if options.export is not None:
        require(
            options.export.parent.is_dir() and not options.export.is_dir(),
            "export",
            "a file in an existing folder",
            options.export,
        )
        require(options.export.suffix in (".csv", ".parquet"), "export", "a .csv or .parquet file", options.export)
    cells = set(study.asked(options.folder))
    index = Index(options.folder, note=lambda text: print(f"note: {text}", file=sys.stderr))
    values = [value for value in index.values() if (value["run"], value["seed"]) in cells]
    if not values:
        raise BadRequest(f"{options.folder} has no cell that is done")
    found = rows(values, by, figures, names(options.tests))
    if not found:
        raise BadRequest(f"nothing was measured of {options.figures} on {options.tests or 'any test set'}")
    console.print(tables.study_table(found, by))
    if varied := also_varied(values, by):
        console.print(
            f"{tables.averaged_over(varied)}; --by {','.join([*by, *varied])} tells them apart",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    if options.export is not None:
        export(found, options.export)
        console.print(f"{len(found)} rows in {options.export}", highlight=False, markup=False, soft_wrap=True)
    return 0


def names(text: str) -> Sequence[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
