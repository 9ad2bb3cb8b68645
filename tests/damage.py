"""Damage to the files of a folder, and what the commands that look at it then say."""

import inspect
import io
import json
import random
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from droptop.cli import main
from droptop.report.page import charts, render, tuning

SECONDS = 60  # after which a command that looks has hung, on a machine however busy
DEEP = 100_000
WRONG: tuple[Any, ...] = ("text", "-1", None, True, -7, 1e300, [], {}, [[]], {"a": {}}, "\ud800", float("nan"))


class Hung(Exception):
    """A command that did not end in time."""


@dataclass(frozen=True)
class Damage:
    """Name what is done to a file; `data` is what it then holds, None where it is gone."""

    path: Path
    how: str
    data: bytes | None

    @contextmanager
    def done(self) -> Iterator[None]:
        """Damage the file inside this context."""
        before = self.path.read_bytes()
        try:
            self.path.unlink() if self.data is None else self.path.write_bytes(self.data)
            yield
        finally:
            self.path.write_bytes(before)


@dataclass
class Seen:
    """Hold what commands showed of a folder: their outputs, what they said besides, and their exit codes."""

    shown: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)


def files_of(folder: Path) -> list[Path]:
    """Return all files that figures, pictures and the commands that look depend on."""
    left = (".lock", ".sweep", ".sweep.json", ".optuna.lock", "report.html")
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in left)


def damages(folder: Path, draw: random.Random) -> Iterator[Damage]:
    """Yield damage of every kind to every file of a folder, at places that are drawn."""
    paths = files_of(folder)
    for path in paths:
        data = path.read_bytes()
        flipped = bytearray(data)
        flipped[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        yield Damage(path, "a flipped bit", bytes(flipped))
        yield Damage(path, "cut off", data[: draw.randrange(len(data))])
        yield Damage(path, "empty", b"")
        yield Damage(path, "gone", None)
        alike = [other for other in paths if other.name == path.name and other.read_bytes() != data]
        if alike:
            yield Damage(path, "exchanged", draw.choice(alike).read_bytes())
        if path.suffix in (".json", ".jsonl", ".toml"):
            yield from damaged_text(path, data, draw)


def damaged_text(path: Path, data: bytes, draw: random.Random) -> Iterator[Damage]:
    """Yield damage to a file of JSON or TOML: digits, nesting, types."""
    if digits := [found.start() for found in re.finditer(rb"[0-9]", data)]:
        place = draw.choice(digits)
        other = draw.choice([digit for digit in b"0123456789" if digit != data[place]])
        yield Damage(path, "a changed digit", data[:place] + bytes([other]) + data[place + 1 :])
    if path.suffix == ".toml":
        yield Damage(
            path, "nested deeply", data.replace(b"seeds", b"deep = " + b"[" * DEEP + b"]" * DEEP + b"\nseeds", 1)
        )
        yield Damage(path, "nested by dots", b".".join([b"a"] * DEEP) + b" = 1\n" + data)
        lines = data.splitlines(keepends=True)
        at = draw.choice([n for n, line in enumerate(lines) if b" = " in line])
        wrong = draw.choice([b'"text"', b"[1, 2]", b"nan", b"-3", b"99999999999", b"{a = 1}", b"true"])
        lines[at] = lines[at].partition(b" = ")[0] + b" = " + wrong + b"\n"
        yield Damage(path, "of a wrong type", b"".join(lines))
        return
    yield Damage(path, "nested deeply", b"[" * DEEP + b"]" * DEEP)
    for _ in range(2):
        parts = data.splitlines() if path.suffix == ".jsonl" else [data]
        at = draw.randrange(len(parts))
        value = json.loads(parts[at])
        replace_leaf(value, draw)
        parts[at] = json.dumps(value).encode()
        yield Damage(path, "of a wrong type", b"\n".join(parts) + b"\n")


def replace_leaf(value: Any, draw: random.Random) -> None:
    """Put something wrong in the place of a part of a value of JSON."""
    while True:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = draw.choice(list(keys))
        if not isinstance(value[key], dict | list) or not value[key] or draw.random() < 0.3:
            value[key] = draw.choice(WRONG)
            return
        value = value[key]


@contextmanager
def in_time(seconds: int = SECONDS) -> Iterator[None]:
    """Raise Hung inside this context after so many seconds."""

    def hung(*_: Any) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def look(folder: Path, out: Path, monkeypatch: Any, commands: tuple[str, ...]) -> Seen:
    """Return what commands show of a folder, in this process; an exception of theirs is the caller's."""
    seen = Seen()
    monkeypatch.setattr(render, "render", drawn)
    for name, function in inspect.getmembers(charts, inspect.isfunction):
        if function.__module__ == charts.__name__ and name != "colour_of":  # altair takes most of a page's time
            monkeypatch.setattr(charts, name, undrawn)
    monkeypatch.setattr(tuning, "over_option", undrawn)
    for command in commands:
        args = [command, str(folder), *(["--out", str(out)] if command == "report" else [])]
        stdout, stderr = io.StringIO(), io.StringIO()
        with redirect_stdout(stdout), redirect_stderr(stderr), in_time():
            seen.codes[command] = main(args)
        shown = out.read_text() if command == "report" and seen.codes[command] == 0 else stdout.getvalue()
        seen.shown[command] = shown
        seen.said += [f"{command}: {line}" for line in stderr.getvalue().splitlines()]
    return seen


def undrawn(*args: Any, **options: Any) -> dict[str, Any]:
    """Return what a chart would be drawn from, in place of the chart."""
    return {"drawn from": repr((args, options))}


def drawn(page: Any, newest: str = "") -> str:
    """Return all that a page says as text, in place of HTML, which takes longer."""
    sections = [section for section in (page.answer, *page.sections) if section is not None]
    charts = [chart.spec for section in sections for chart in section.charts]
    parts = {name: str(value) for name, value in vars(page).items() if name not in ("answer", "sections", "unfit")}
    rows = [[section.title, section.note, section.rows] for section in sections]
    return str(render.in_script([parts, rows, charts]))


def check_looks(damage: Damage, before: Seen, now: Seen) -> None:
    """Fail where a command shows something else than before the damage, and nobody says why."""
    for command, shown in now.shown.items():
        if command == "verify":  # which says what does not fit where others show figures
            continue
        if shown != before.shown[command] or now.codes[command] != before.codes[command]:
            lines = [line for line in now.said if line.startswith(f"{command}: ") and line not in before.said]
            assert lines or "was changed after the run began" in shown, (
                f"{damage.path}, {damage.how}: {command} shows something else and says nothing"
            )
    for line in now.said:
        assert "Traceback" not in line, f"{damage.path}, {damage.how}: {line}"


def without_checksums(folder: Path) -> Path:
    """Make a folder into one of an earlier version: without manifests, and without seals."""
    from droptop.system.toml_files import without_seal

    for path in folder.rglob("manifest.json"):
        path.unlink()
    for path in folder.rglob("*.toml"):
        path.write_text(without_seal(path.read_text()))
    for path in folder.rglob("tune*.json"):
        content = json.loads(path.read_text())
        content.pop("seal")
        path.write_text(json.dumps(content))
    cells = folder / "cells.json"
    if cells.exists():
        from droptop.sweeps.study_folder import fingerprint

        record = json.loads(cells.read_text())
        record.pop("seal")
        cells.write_text(json.dumps(record | {"study": fingerprint(folder)}))
    return folder
