"""Execute a run or a comparison: train the seeds that are missing in a folder, then write the summaries."""

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
from droptop.runs.requests import arms, file_hash, finished, ignore, record_environment
from droptop.system.files import write_changed, write_json
from droptop.training.observer import Job, Observer
from droptop.training.worker_pool import run_jobs


def execute(command: Command, config: Config, out: Path, observer: Observer) -> dict[str, Any]:
    """Run the seeds that are missing in a folder; return its summary (run) or its comparison (compare)."""
    if unfinished := not finished(command, config, out):
        config.options.check_machine()
        trackers.check(config.options.log)
    runs = arms(command, config, out)
    places = {out: config} | runs
    hashed = cache(file_hash)
    with note_write_errors(not unfinished, "what was asked for", observer.note):
        for place, its_config in places.items():
            place.mkdir(parents=True, exist_ok=True)
            note = observer.note if place == out else ignore
            record_environment(place, its_config, unfinished, note, hashed)
        for place, its_config in places.items():  # only once all of them are known to be what they were
            write_changed(place / "config.toml", to_toml(its_config, command if place == out else "run").encode())
            if unfinished:
                record_flags(place, its_config)
    jobs = [Job(arm, run, seed) for seed in config.seeds for run, arm in runs.items() if not is_done(run, seed)]
    if jobs:
        run_jobs(jobs, observer, config.options.threads)
    summaries = {run / "summary.json": RunFolder(run, arm.noted()).summary() for run, arm in runs.items()}
    answer = {} if command == "run" else {out / "compare.json": compare(*summaries.values())}
    with note_write_errors(not unfinished, "a summary", observer.note):
        for path, content in (summaries | answer).items():
            write_json(path, content)
    return next(iter((answer or summaries).values()))


@contextmanager
def note_write_errors(finished: bool, what: str, note: Callable[[str], None]) -> Iterator[None]:
    """Note an OSError instead of raising it if the run is finished: a read-only folder can still be shown."""
    try:
        yield
    except OSError as error:
        if not finished:
            raise
        note(f"{what} could not be written: {error.filename}: {error.strerror}")
