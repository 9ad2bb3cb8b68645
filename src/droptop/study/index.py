"""index.sqlite: where every cell of a study stands, for those who ask. Run folders are the truth.

Only the sweep that holds a study writes its index. It can be deleted at any time: a sweep makes it anew from the
folders, and whoever only reads makes one in memory. A cell is done once its result.json is there, whole.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from droptop.config import FREE, Config, flatten
from droptop.engine.run import load
from droptop.errors import BadRequest
from droptop.results.folder import is_locked, seed_folder, whole_result

FORMAT = 1
TABLES = """
CREATE TABLE about (format INTEGER);
CREATE TABLE cells (run TEXT, seed INTEGER, status TEXT, error TEXT, finished REAL, PRIMARY KEY (run, seed));
CREATE TABLE options (run TEXT, name TEXT, value TEXT, PRIMARY KEY (run, name));
CREATE TABLE figures (run TEXT, seed INTEGER, test TEXT, figure TEXT, value REAL,
                      PRIMARY KEY (run, seed, test, figure));
"""


class Cell(NamedTuple):
    run: str  # name of its folder in runs/
    seed: int


class Index:
    def __init__(self, study: Path, writes: bool = False, note: Callable[[str], None] = lambda text: None) -> None:
        """The study's index, made anew where it is missing, damaged or does not have every cell. Where it cannot be
        written it is kept in memory: a full disk is no reason to stop counting."""
        self.study, self.note, path = study, note, study / "index.sqlite"
        if not writes:
            self.open(":memory:")
            self.catch_up()
            return
        try:
            try:
                self.open(str(path))
            except sqlite3.Error:
                for name in ("index.sqlite", "index.sqlite-journal"):
                    (study / name).unlink(missing_ok=True)
                self.open(str(path))
            self.catch_up()
        except (sqlite3.Error, OSError) as error:
            self.give_up_writing(error)

    def give_up_writing(self, error: Exception) -> None:
        self.note(f"{self.study / 'index.sqlite'} cannot be written ({error}); it can be made again at any time")
        self.open(":memory:")
        self.catch_up()

    def open(self, place: str) -> None:
        self.database = sqlite3.connect(place, isolation_level=None)
        self.database.execute("PRAGMA synchronous = OFF")  # it can be made anew
        if not self.database.execute("SELECT name FROM sqlite_master WHERE name = 'about'").fetchall():
            self.database.executescript(TABLES)
            self.database.execute("INSERT INTO about VALUES (?)", (FORMAT,))
        elif self.database.execute("SELECT format FROM about").fetchall() != [(FORMAT,)]:
            raise sqlite3.DatabaseError("another format")
        if self.database.execute("PRAGMA quick_check").fetchall() != [("ok",)]:
            raise sqlite3.DatabaseError("damaged")

    def close(self) -> None:
        self.database.close()

    # -- What the folders say -----------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Takes in what folders have and the index has not."""
        known = dict(self.database.execute("SELECT run || '/' || seed, status FROM cells").fetchall())
        with self.writing():
            for run in sorted(path.parent for path in (self.study / "runs").glob("*/config.toml")):
                try:
                    _, config = load(run)
                except BadRequest as error:
                    self.note(f"{run} cannot be read: {error}")
                    continue
                self.add(run.name, config)
                for seed in config.seeds:
                    if known.get(f"{run.name}/{seed}") != "done":
                        self.look(Cell(run.name, seed))

    def add(self, run: str, config: Config) -> None:
        options = {path: value for path, value in flatten(config).items() if path not in ("seeds", "first_seed")}
        self.database.executemany(
            "INSERT OR REPLACE INTO options VALUES (?, ?, ?)",
            [(run, name, json.dumps(value, default=str)) for name, value in options.items()],
        )

    def look_again(self, cells: Iterable[Cell]) -> None:
        """Looks at those that the index has for done, though they are to be run: their results are damaged or gone."""
        done = {cell for cell, status in self.statuses().items() if status == "done"}
        for cell in done.intersection(cells):
            self.look(cell)

    def look(self, cell: Cell) -> tuple[str, str]:
        """Notes where a cell stands by what is on the disk; gives where it stood before and where it stands now."""
        try:
            return self._look(cell)
        except sqlite3.Error as error:
            self.give_up_writing(error)
            return "waiting", self._look(cell)[1]

    def _look(self, cell: Cell) -> tuple[str, str]:
        before = self.database.execute("SELECT status FROM cells WHERE run = ? AND seed = ?", cell).fetchone()
        run = self.study / "runs" / cell.run
        folder = seed_folder(run, cell.seed)
        status, error, finished = "waiting", None, None
        with suppress(OSError, ValueError, KeyError):
            if (result := whole_result(run, cell.seed)) is not None:
                rows = [
                    (*cell, test, figure, value)
                    for test, figures in result["tests"].items()
                    for figure, value in figures.items()
                    if value is None or isinstance(value, int | float)
                ]
                self.database.executemany("INSERT OR REPLACE INTO figures VALUES (?, ?, ?, ?, ?)", rows)
                status, finished = "done", (folder / "result.json").stat().st_mtime
            else:
                error = json.loads((folder / "failed.json").read_text())["error"]
                status = "failed"
        self.database.execute("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?)", (*cell, status, error, finished))
        return before[0] if before else "waiting", status

    def writing(self) -> sqlite3.Connection:
        """Everything within is written at once."""
        self.database.execute("BEGIN")
        return self.database

    # -- What people ask ----------------------------------------------------------------------------------------------

    def counts(self, cells: Iterable[Cell]) -> dict[str, int]:
        """How many of these are done, waiting and failed."""
        counts = {"done": 0, "waiting": 0, "failed": 0}
        known = self.statuses()
        for cell in cells:
            counts[known.get(cell, "waiting")] += 1
        return counts

    def statuses(self) -> dict[Cell, str]:
        return {
            Cell(run, seed): status
            for run, seed, status in self.database.execute("SELECT run, seed, status FROM cells")
        }

    def running(self) -> list[Cell]:
        """Cells that a process is at work on: those whose folder is locked."""
        return [
            cell
            for cell, status in self.statuses().items()
            if status != "done" and is_locked(seed_folder(self.study / "runs" / cell.run, cell.seed))
        ]

    def failures(self) -> list[tuple[Cell, str]]:
        rows = self.database.execute("SELECT run, seed, error FROM cells WHERE status = 'failed'").fetchall()
        return [(Cell(run, seed), error) for run, seed, error in rows]

    def pace(self) -> float | None:
        """Seconds between the last cells that were finished."""
        times = [
            row[0]
            for row in self.database.execute(
                "SELECT finished FROM cells WHERE status = 'done' ORDER BY finished DESC LIMIT 20"
            )
        ]
        if len(times) < 2 or times[0] == times[-1] or time.time() - times[0] > 3600:
            return None
        return (times[0] - times[-1]) / (len(times) - 1)

    def names(self) -> dict[str, str]:
        """Runs by what sets them apart: stream, method, debiasing, and whatever else varies."""
        options: dict[str, dict[str, str]] = {}
        for run, name, value in self.database.execute("SELECT run, name, value FROM options"):
            options.setdefault(run, {})[name] = value
        first = ("data", "method", "debias")
        every = {name for values in options.values() for name in values} - {*first, *FREE}
        varied = sorted(
            name for name in every if len({values[name] for values in options.values() if name in values}) > 1
        )
        return {
            run: " ".join(
                [json.loads(values[name]) for name in first]
                + [f"{name.rpartition('.')[2]}={values[name]}" for name in varied if name in values]
            )
            for run, values in options.items()
        }

    def values(self) -> Iterable[dict[str, Any]]:
        """Every figure of every cell that is done, with the options it was measured under."""
        options: dict[str, dict[str, Any]] = {}
        for run, name, value in self.database.execute("SELECT run, name, value FROM options"):
            options.setdefault(run, {})[name] = json.loads(value)
        for run, seed, test, figure, value in self.database.execute(
            "SELECT run, seed, test, figure, value FROM figures ORDER BY run, seed, test, figure"
        ):
            yield {**options[run], "run": run, "seed": seed, "test": test, "figure": figure, "value": value}
