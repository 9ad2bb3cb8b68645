"""Whole runs and comparisons: what is missing in a folder is run, and the answer written."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from droptop import trackers
from droptop.results.statistics import compare
from droptop.runs.config import Config, to_toml
from droptop.runs.flags import record_flags
from droptop.runs.folder import Command, RunFolder, is_done
from droptop.runs.requests import arms, file_hashes, finished, ignore, record_environment
from droptop.system.files import write_changed, write_json
from droptop.training.observer import Job, Observer
from droptop.training.workers import run_jobs


def execute(command: Command, config: Config, out: Path, observer: Observer) -> dict[str, Any]:
    """Run what is missing in a folder; return its summary (run) or comparison (compare)."""
    if unfinished := not finished(command, config, out):
        config.options.check_machine()
        trackers.check(config.options.log)
    runs = arms(command, config, out)
    places = {out: config} | runs
    behind = cache(file_hashes)
    with forgiven(not unfinished, "what was asked for", observer.note):
        for place, asked in places.items():
            place.mkdir(parents=True, exist_ok=True)
            note = observer.note if place == out else ignore
            record_environment(place, asked, unfinished, note, behind)
        for place, asked in places.items():  # not before all of them are found to be what they were
            write_changed(place / "config.toml", to_toml(asked, command if place == out else "run").encode())
            if unfinished:
                record_flags(place, asked)
    jobs = [Job(arm, run, seed) for seed in config.seeds for run, arm in runs.items() if not is_done(run, seed)]
    if jobs:
        run_jobs(jobs, observer, config.options.threads)
    summaries = {run / "summary.json": RunFolder(run, arm.noted()).summary() for run, arm in runs.items()}
    answer = {} if command == "run" else {out / "compare.json": compare(*summaries.values())}
    with forgiven(not unfinished, "a summary", observer.note):
        for path, found in (summaries | answer).items():
            write_json(path, found)
    return next(iter((answer or summaries).values()))


@contextmanager
def forgiven(finished: bool, what: str, note: Callable[[str], None]) -> Iterator[None]:
    """Of a run that is finished everything can be shown, wherever it lies: what cannot be written there is noted."""
    try:
        yield
    except OSError as error:
        if not finished:
            raise
        note(f"{what} could not be written: {error.filename}: {error.strerror}")
