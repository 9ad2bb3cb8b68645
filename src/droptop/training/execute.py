"""Execute a run or a comparison: train the seeds that are missing in a folder, then write the summaries."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from droptop import trackers
from droptop.runs.compared import compared
from droptop.runs.flags import record_flags
from droptop.runs.folder import RunFolder, is_done
from droptop.runs.plan import Plan
from droptop.runs.requests import file_hash, finished, ignore, record_environment, write_config
from droptop.system.files import write_json
from droptop.system.locks import note_without_locks
from droptop.training.observer import Job, Observer
from droptop.training.worker_pool import run_jobs


def execute(plan: Plan, out: Path, observer: Observer) -> dict[str, Any]:
    """Run the seeds that are missing in a folder; return its summary (run) or its comparison (compare)."""
    runs = plan.folders(out)
    if unfinished := not finished(plan, out):
        for arm in runs.values():
            arm.options.check_machine()
            trackers.check(arm.options.log)
    places = {out: plan} | ({} if out in runs else {run: Plan("run", {"": arm}) for run, arm in runs.items()})
    hashed = cache(file_hash)
    with note_write_errors(not unfinished, "what was asked for", observer.note):
        for place, asked in places.items():
            place.mkdir(parents=True, exist_ok=True)
            note = observer.note if place == out else ignore
            record_environment(place, asked, unfinished, note, hashed)
        for place, asked in places.items():  # only once all of them are known to be what they were
            write_config(place, asked)
            if unfinished:
                record_flags(place, asked)
        if unfinished:
            note_without_locks(out / "config.toml", observer.note)
    configurations = {run: arm.configuration() for run, arm in runs.items()}
    jobs = [
        Job(arm, run, seed, name=f"{name} seed {seed}")
        for seed in plan.seeds
        for (run, arm), name in zip(runs.items(), plan.arms)
        if not is_done(run, seed, configurations[run])
    ]
    if jobs:
        run_jobs(jobs, observer, plan.options.threads)
    folders = [RunFolder(run, arm.noted(), name) for (run, arm), name in zip(runs.items(), plan.arms)]
    summaries = {folder.name: folder.summary() for folder in folders}
    files = {folder.path / "summary.json": summaries[folder.name] for folder in folders}
    if plan.command == "compare":
        files[out / "compare.json"] = compared(out, summaries)
    with note_write_errors(not unfinished, "a summary", observer.note):
        for path, content in files.items():
            write_json(path, content)
    return list(files.values())[-1]


@contextmanager
def note_write_errors(finished: bool, what: str, note: Callable[[str], None]) -> Iterator[None]:
    """Note an OSError instead of raising it if the run is finished: a read-only folder can still be shown."""
    try:
        yield
    except OSError as error:
        if not finished:
            raise
        note(f"{what} could not be written: {error.filename}: {error.strerror}")
