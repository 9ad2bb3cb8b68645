"""index.sqlite: where every cell of a study stands, for those who ask. Run folders are the truth.

Only the sweep that holds a study writes its index. It can be deleted at any time: a sweep makes it anew from the
folders, and whoever only reads makes one in memory. A cell is done once its result.json is there.
"""

import json
import sqlite3
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from droptop.config import Config, flatten
from droptop.engine.run import load
from droptop.errors import BadRequest
from droptop.results.folder import is_locked, seed_folder

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
    def __init__(self, study: Path, writes: bool = False) -> None:
        """The study's index, made anew where it is missing, damaged or does not have every cell."""
        self.study, path = study, study / "index.sqlite"
        if writes:
            try:
                self.open(str(path))
            except sqlite3.Error:
                for name in ("index.sqlite", "index.sqlite-wal", "index.sqlite-shm", "index.sqlite-journal"):
                    (study / name).unlink(missing_ok=True)
                self.open(str(path))
        else:
            self.open(":memory:")
        self.catch_up()

    def open(self, place: str) -> None:
        self.database = sqlite3.connect(place, isolation_level=None)
        if place != ":memory:":
            self.database.execute("PRAGMA journal_mode = WAL")
            self.database.execute("PRAGMA synchronous = NORMAL")
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
                with suppress(BadRequest):  # a folder that somebody spoiled is shown as missing, not as an error
                    _, config = load(run)
                    self.add(run.name, config)
                    for seed in config.seeds:
                        if known.get(f"{run.name}/{seed}") != "done":
                            self.look(Cell(run.name, seed))

    def add(self, run: str, config: Config) -> None:
        options = {path: value for path, value in flatten(config).items() if path not in ("seeds", "first_seed")}
        self.database.executemany("INSERT OR REPLACE INTO options VALUES (?, ?, ?)",
                                  [(run, name, json.dumps(value, default=str)) for name, value in options.items()])

    def look(self, cell: Cell) -> tuple[str, str]:
        """Notes where a cell stands by what is on the disk; gives where it stood before and where it stands now."""
        before = self.database.execute("SELECT status FROM cells WHERE run = ? AND seed = ?", cell).fetchone()
        folder = seed_folder(self.study / "runs" / cell.run, cell.seed)
        status, error, finished = "waiting", None, None
        try:
            result = json.loads((folder / "result.json").read_text())
            status, finished = "done", (folder / "result.json").stat().st_mtime
            rows = [(*cell, test, figure, value) for test, figures in result["tests"].items()
                    for figure, value in figures.items() if value is None or isinstance(value, int | float)]
            self.database.executemany("INSERT OR REPLACE INTO figures VALUES (?, ?, ?, ?, ?)", rows)
        except (OSError, ValueError, KeyError, AttributeError):
            status = "waiting"
            with suppress(OSError, ValueError, KeyError):
                error = json.loads((folder / "failed.json").read_text())["traceback"]
                status = "failed"
        self.database.execute("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?)", (*cell, status, error, finished))
        return before[0] if before else "waiting", status

    def writing(self) -> sqlite3.Connection:
        """Everything within is written at once."""
        self.database.execute("BEGIN")
        return self.database

    # -- What people ask ----------------------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        counted = dict(self.database.execute("SELECT status, count(*) FROM cells GROUP BY status").fetchall())
        return {status: counted.get(status, 0) for status in ("done", "waiting", "failed")}

    def running(self) -> list[Cell]:
        """Cells that a process is at work on: those whose folder is locked."""
        waiting = self.database.execute("SELECT run, seed FROM cells WHERE status != 'done'").fetchall()
        return [Cell(*row) for row in waiting
                if is_locked(seed_folder(self.study / "runs" / row[0], row[1]))]

    def failures(self) -> list[tuple[Cell, str]]:
        rows = self.database.execute("SELECT run, seed, error FROM cells WHERE status = 'failed'").fetchall()
        return [(Cell(run, seed), error) for run, seed, error in rows]

    def seconds_left(self) -> float | None:
        """At the pace of the last cells that were finished."""
        times = [row[0] for row in self.database.execute(
            "SELECT finished FROM cells WHERE status = 'done' ORDER BY finished DESC LIMIT 50")]
        waiting = self.counts()["waiting"]
        if len(times) < 2 or times[0] == times[-1] or time.time() - times[0] > 3600:
            return None
        return waiting * (times[0] - times[-1]) / (len(times) - 1)

    def values(self) -> Iterable[dict[str, Any]]:
        """Every figure of every cell that is done, with the options it was measured under."""
        options: dict[str, dict[str, Any]] = {}
        for run, name, value in self.database.execute("SELECT run, name, value FROM options"):
            options.setdefault(run, {})[name] = json.loads(value)
        for run, seed, test, figure, value in self.database.execute(
                "SELECT run, seed, test, figure, value FROM figures ORDER BY run, seed, test, figure"):
            yield {**options[run], "run": run, "seed": seed, "test": test, "figure": figure, "value": value}
