"""The folder of a study, for all who read it: its cells, the state of each, and what was measured.

    STUDY/study.toml         the study, as it was last asked for
    STUDY/cells.json         the cells it comes to, so that nobody has to load every learner to count them
    STUDY/runs/NAME/         a run folder per configuration
    STUDY/runs/NAME/seed-K/failed.json    why a cell failed, where it failed twice

A cell is done once its result.json is there, whole. The state of a cell is kept nowhere else.
"""

import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from droptop.errors import BadRequest
from droptop.options import WITHOUT_EFFECT
from droptop.runs.findings import Findings
from droptop.runs.folder import RunFolder, read_request, seed_folder
from droptop.runs.seed_files import SeedFiles
from droptop.system.files import sha256
from droptop.system.json_files import read_json
from droptop.system.locks import is_locked
from droptop.system.sealed_json import read_sealed, write_sealed
from droptop.system.short_names import short_names
from droptop.system.toml_files import seal_holds

HELD, HOLDER = ".sweep", ".sweep.json"  # the lock of the sweep that is at work; which process and host that is
Status = Literal["done", "waiting", "failed"]
LAST = 20  # cells from which the pace is computed


class Cell(NamedTuple):
    """Name a configuration and a seed."""

    run: str  # name of its folder in runs/
    seed: int


class CellState(NamedTuple):
    """Hold the state of a cell; None where its status has no such value."""

    status: Status
    error: str | None = None  # why it failed
    finished: float | None = None  # when it was done, in seconds since 1970
    tests: dict[str, Any] | None = None  # figures by test set
    guesses: dict[str, Any] | None = None  # what guesses reach, by test set; None of older results


class StudyFolder:
    """Hold the cells of a study by their states; tell `note` of run folders that cannot be read."""

    def __init__(self, study: Path, note: Callable[[str], None] = lambda text: None) -> None:
        self.study = study
        self.runs: dict[str, RunFolder] = {}
        self.findings = Findings(study)
        for path in sorted(path for path in (study / "runs").glob("*") if path.is_dir()):
            try:
                self.runs[path.name] = read_request(path).arms[0]
            except BadRequest as error:
                note(f"{path} cannot be read: {error}")
        self.cells = {Cell(name, seed): self.read(name, seed) for name, run in self.runs.items() for seed in run.seeds}

    def read(self, name: str, seed: int) -> CellState:
        """Return the state of a cell by what is on the disk now."""
        files = SeedFiles(self.runs[name], seed)
        self.findings.add(files)
        with suppress(OSError, ValueError, KeyError, TypeError):
            if files.result is not None:
                written = (files.folder / "result.json").stat().st_mtime
                return CellState("done", None, written, files.result["tests"], files.result.get("guesses"))
            if error := str(read_json(files.folder / "failed.json")["error"]).strip():
                return CellState("failed", error)
        return CellState("waiting")

    def refresh(self, cell: Cell) -> tuple[Status, Status]:
        """Read a cell again; return its status before and its status now."""
        before = self.cells[cell].status if cell in self.cells else "waiting"
        if cell.run not in self.runs:
            self.runs[cell.run] = read_request(self.study / "runs" / cell.run).arms[0]
        self.cells[cell] = self.read(*cell)
        return before, self.cells[cell].status

    def counts(self, cells: Iterable[Cell]) -> dict[str, int]:
        """Return how many of these cells are done, waiting and failed."""
        counts = {"done": 0, "waiting": 0, "failed": 0}
        for cell in cells:
            counts[self.cells[cell].status if cell in self.cells else "waiting"] += 1
        return counts

    def running(self) -> list[Cell]:
        """Return the cells that a process is at work on, whose folders are locked."""
        return [
            cell
            for cell, state in self.cells.items()
            if state.status != "done" and is_locked(seed_folder(self.study / "runs" / cell.run, cell.seed))
        ]

    def failures(self) -> list[tuple[Cell, str]]:
        """Return the cells that failed, each with the reason."""
        return [(cell, state.error) for cell, state in self.cells.items() if state.error is not None]

    def lines(self) -> list[str]:
        """Return what to say of the study besides: what does not fit and is left out, and what was edited."""
        return edited_lines(self.study) + self.findings.lines()

    def pace(self) -> float | None:
        """Return the mean seconds between the last cells that were finished; None without recent ones.

        Times in the future are of a clock that was set back since, and say nothing.
        """
        times = sorted((state.finished for state in self.cells.values() if state.finished is not None), reverse=True)
        times = times[:LAST]
        if len(times) < 2 or times[0] == times[-1] or not 0 <= time.time() - times[0] <= 3600:
            return None
        return (times[0] - times[-1]) / (len(times) - 1)

    def names(self) -> dict[str, str]:
        """Return a name per run folder: stream, method, debiasing, and what varies among runs alike in these."""
        alike: dict[str, dict[str, dict[str, str]]] = {}  # options by run folder, by stream, method and debiasing
        short = {
            path: short_names(str(run.options[path]) for run in self.runs.values())
            for path in ("data", "method", "debias")
        }
        for folder, run in self.runs.items():
            name = " ".join(of_path[str(run.options[path])] for path, of_path in short.items())
            options = {path: json.dumps(value) for path, value in run.options.items() if path not in WITHOUT_EFFECT}
            alike.setdefault(name, {})[folder] = options
        names = {}
        for name, by_folder in alike.items():
            paths = {path for options in by_folder.values() for path in options}
            varied = sorted(path for path in paths if len({options.get(path) for options in by_folder.values()}) > 1)
            for folder, options in by_folder.items():
                values = [f"{path.rpartition('.')[2]}={options[path]}" for path in varied if path in options]
                names[folder] = " ".join([name, *values])
        return names

    def values(self) -> Iterator[dict[str, Any]]:
        """Yield every figure of every cell that is done, with the cell's options."""
        for cell in sorted(self.cells):
            yield from values_of(self.runs[cell.run], cell, self.cells[cell].tests or {})

    def guesses(self) -> Iterator[dict[str, Any]]:
        """Yield what guesses reach in every cell that is done, as `values` does: the figures chance and constant."""
        for cell in sorted(self.cells):
            yield from values_of(self.runs[cell.run], cell, self.cells[cell].guesses or {})


def values_of(run: RunFolder, cell: Cell, tests: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the figures of a cell, which are given by test set, with its options."""
    options = {path: value for path, value in run.options.items() if path != "first_seed"}
    for test in sorted(tests):
        for figure in sorted(tests[test]):
            value = tests[test][figure]
            if value is None or isinstance(value, int | float):
                yield {**options, **cell._asdict(), "test": test, "figure": figure, "value": value}


def values_of_comparison(folder: Path) -> tuple[list[dict[str, Any]], Findings]:
    """Return every figure of every seed of a comparison that is done, with the arm's name and its options.

    Return what does not fit, too.
    """
    values, findings = list[dict[str, Any]](), Findings(folder)
    for arm in read_request(folder).arms:
        for seed in arm.seeds:
            files = SeedFiles(arm, seed)
            findings.add(files)
            tests = {} if files.result is None else files.result["tests"]
            values += (value | {"arm": arm.name} for value in values_of(arm, Cell(arm.name, seed), tests))
    return values, findings


# -- What study.toml asks for -----------------------------------------------------------------------------------------


def record_cells(study: Path, cells: Iterable[Cell]) -> None:
    """Record in cells.json the cells that study.toml comes to, for those who only read the folder."""
    record = {"study": fingerprint(study), "cells": [list(cell) for cell in cells]}
    write_sealed(study / "cells.json", record)


def recorded_cells(study: Path) -> list[Cell] | None:
    """Return the cells that study.toml asks for, by cells.json; None where it is missing or study.toml has changed."""
    try:
        record = read_sealed(study / "cells.json")
        if record["study"] == fingerprint(study):
            return [Cell(str(run), int(seed)) for run, seed in record["cells"]]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        pass
    return None


def edited_lines(study: Path) -> list[str]:
    """Return a line where what a study asks for is not as droptop wrote it."""
    if is_edited(study):
        return [f"{study / 'study.toml'} has changed since droptop wrote it: cells are those that it asks for now"]
    if (study / "cells.json").exists() and recorded_cells(study) is None:
        return [f"{study / 'cells.json'} is damaged: cells are counted anew"]
    return []


def is_edited(study: Path) -> bool:
    """Return whether study.toml is not as droptop wrote it, by its seal or, of an earlier version, by cells.json."""
    if (held := seal_holds(study / "study.toml")) is not None:
        return not held
    try:
        return bool(read_json(study / "cells.json")["study"] != fingerprint(study))
    except (OSError, ValueError, TypeError, KeyError):
        return False


def fingerprint(study: Path) -> str:
    """Return the SHA-256 of study.toml."""
    return sha256(study / "study.toml")


def requested_cells(study: Path) -> list[Cell]:
    """Return the cells that study.toml asks for; the folders may hold more, of earlier versions of it.

    Where the file of a method is gone, nobody can tell what study.toml asks for: then return all cells in the folders.
    """
    if (cells := recorded_cells(study)) is not None:
        return cells
    from droptop.sweeps.grid import cells_of, read_study
    from droptop.system.handed import Gone  # these load torch and every learner

    try:
        return cells_of(read_study(study / "study.toml"))
    except Gone as error:
        warnings.warn(f"{error}; cells are those that {study} holds", stacklevel=2)
    return list(StudyFolder(study).cells)
