"""The folder of a study, as everybody reads it: its cells, where each of them stands, and what was measured.

    STUDY/study.toml         what was asked for, as it was last asked for
    STUDY/cells.json         the cells that this comes to, so that nobody has to load every learner to count them
    STUDY/runs/NAME/         a run folder per configuration
    STUDY/runs/NAME/seed-K/failed.json    of a cell that failed twice: why

A cell is done once its result.json is there, whole. Nothing is kept beside the folders: they are the truth.
"""

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from droptop.errors import BadRequest
from droptop.options import WITHOUT_EFFECT
from droptop.runs.folder import RunFolder, read_request, seed_folder, whole_result
from droptop.system.files import write_json
from droptop.system.locks import is_locked

HELD, HOLDER = ".sweep", ".sweep.json"  # locked by the sweep that is at work; which process that is
Status = Literal["done", "waiting", "failed"]
LAST = 20  # cells that the pace is judged by


class Cell(NamedTuple):
    """Name one configuration and one seed."""

    run: str  # name of its folder in runs/
    seed: int


class CellState(NamedTuple):
    """Say where a cell stands."""

    status: Status
    error: str | None = None  # of a cell that failed
    finished: float | None = None  # when, of a cell that is done
    tests: dict[str, Any] | None = None  # figures by test set, of a cell that is done


class StudyFolder:
    """Read every cell of a study; `note` is told of run folders that cannot be read."""

    def __init__(self, study: Path, note: Callable[[str], None] = lambda text: None) -> None:
        self.study = study
        self.runs: dict[str, RunFolder] = {}
        for path in sorted((study / "runs").glob("*/config.toml")):
            try:
                self.runs[path.parent.name] = read_request(path.parent).arms[0]
            except BadRequest as error:
                note(f"{path.parent} cannot be read: {error}")
        self.cells = {Cell(name, seed): self.read(name, seed) for name, run in self.runs.items() for seed in run.seeds}

    def read(self, name: str, seed: int) -> CellState:
        """Return where a cell stands by what is on the disk now."""
        run = self.study / "runs" / name
        folder = seed_folder(run, seed)
        with suppress(OSError, ValueError, KeyError):
            if (result := whole_result(run, seed)) is not None:
                return CellState("done", None, (folder / "result.json").stat().st_mtime, result["tests"])
            return CellState("failed", json.loads((folder / "failed.json").read_text())["error"])
        return CellState("waiting")

    def refresh(self, cell: Cell) -> tuple[Status, Status]:
        """Read a cell again; return where it stood before and where it stands now."""
        before = self.cells[cell].status if cell in self.cells else "waiting"
        self.cells[cell] = self.read(*cell)
        return before, self.cells[cell].status

    def counts(self, cells: Iterable[Cell]) -> dict[str, int]:
        """Return how many of these cells are done, waiting and failed."""
        counts = {"done": 0, "waiting": 0, "failed": 0}
        for cell in cells:
            counts[self.cells[cell].status if cell in self.cells else "waiting"] += 1
        return counts

    def running(self) -> list[Cell]:
        """Return the cells that a process is at work on: those whose folder is locked."""
        return [
            cell
            for cell, state in self.cells.items()
            if state.status != "done" and is_locked(seed_folder(self.study / "runs" / cell.run, cell.seed))
        ]

    def failures(self) -> list[tuple[Cell, str]]:
        """Return the cells that failed, and why."""
        return [(cell, state.error) for cell, state in self.cells.items() if state.error is not None]

    def pace(self) -> float | None:
        """Return the seconds between the last cells that were finished; None where that says nothing about now."""
        times = sorted((state.finished for state in self.cells.values() if state.finished is not None), reverse=True)
        times = times[:LAST]
        if len(times) < 2 or times[0] == times[-1] or time.time() - times[0] > 3600:
            return None
        return (times[0] - times[-1]) / (len(times) - 1)

    def names(self) -> dict[str, str]:
        """Return runs by what sets them apart: stream, method, debiasing, and whatever else varies."""
        first = ("data", "method", "debias")
        options = {
            name: {path: json.dumps(value) for path, value in run.options.items()} for name, run in self.runs.items()
        }
        every = {path for values in options.values() for path in values} - {*first, *WITHOUT_EFFECT}
        varied = sorted(path for path in every if len({values.get(path) for values in options.values()}) > 1)
        return {
            name: " ".join(
                [str(run.options[path]) for path in first]
                + [f"{path.rpartition('.')[2]}={options[name][path]}" for path in varied if path in options[name]]
            )
            for name, run in self.runs.items()
        }

    def values(self) -> Iterator[dict[str, Any]]:
        """Give every figure of every cell that is done, with the options it was measured under."""
        for cell in sorted(self.cells):
            tests = self.cells[cell].tests or {}
            options = {path: value for path, value in self.runs[cell.run].options.items() if path != "first_seed"}
            for test in sorted(tests):
                for figure in sorted(tests[test]):
                    value = tests[test][figure]
                    if value is None or isinstance(value, int | float):
                        yield {**options, **cell._asdict(), "test": test, "figure": figure, "value": value}


# -- What the study's own file asks for -------------------------------------------------------------------------------


def note_cells(study: Path, cells: Iterable[Cell]) -> None:
    """Write down the cells that study.toml comes to, for those who only read."""
    write_json(study / "cells.json", {"study": fingerprint(study), "cells": [list(cell) for cell in cells]})


def asked_cells(study: Path) -> list[Cell] | None:
    """Return the cells that study.toml asks for, as they were noted; None where it has changed or nobody noted them."""
    try:
        noted = json.loads((study / "cells.json").read_text())
        if noted["study"] == fingerprint(study):
            return [Cell(str(run), int(seed)) for run, seed in noted["cells"]]
    except (OSError, ValueError, TypeError, KeyError):
        pass
    return None


def fingerprint(study: Path) -> str:
    return hashlib.sha256((study / "study.toml").read_bytes()).hexdigest()


def asked(study: Path) -> list[Cell]:
    """Return the cells that a study's own file asks for; folders may hold more, of earlier versions of it.

    Where the file of a method is gone, nobody knows what that asks for, and it is whatever the folders hold.
    """
    if (noted := asked_cells(study)) is not None:
        return noted
    from droptop.methods.from_file import Gone  # these load every learner
    from droptop.sweeps.grid import cells_of, read_study

    try:
        return cells_of(read_study(study / "study.toml"))
    except Gone as error:
        warnings.warn(f"{error}; cells are those that {study} holds", stacklevel=2)
    return list(StudyFolder(study).cells)
