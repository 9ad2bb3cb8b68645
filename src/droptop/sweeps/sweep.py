"""Runs the cells of a study that are not done yet, by one engine or another.

One sweep at a time holds a study. Whoever runs a cell locks that cell's folder, so that none has
two writers. A cell that fails is tried once more, from its last checkpoint; then it is marked, and the rest goes on.
"""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from droptop import trackers
from droptop.errors import BadRequest, Diverged
from droptop.runs.build import build_learner, build_stream
from droptop.runs.config import Config, defaults, to_toml
from droptop.runs.folder import RunFolder, is_done, seed_folder
from droptop.runs.requests import files_behind, load, note_environment
from droptop.sweeps.grid import cells_of, folder_name, read_study, settled
from droptop.sweeps.study_folder import HELD, HOLDER, Cell, StudyFolder, note_cells
from droptop.system.files import write_changed, write_json
from droptop.system.locks import Held, locked
from droptop.training.observer import Job, Observer
from droptop.training.workers import Failure

Pack = list[Job]  # cells that one worker runs together: on a GPU those of a configuration, or of several
TRIES = 2


class Driver(Observer):
    """Be told by an engine what became of cells, and say what to try again."""

    def retry(self, jobs: Sequence[Job], failure: Failure) -> list[Pack]:
        """Take jobs that failed; return what to try again, in packs."""
        raise NotImplementedError


Engine = Callable[[list[Pack], Driver], None]


class Sweep(Driver):
    """Keep the books while an engine works; a person's observer is told of what is settled."""

    def __init__(self, folder: StudyFolder, cells: Sequence[Cell], person: Observer) -> None:
        self.folder, self.person = folder, person
        self.tries: dict[tuple[Path, int], int] = {}
        self.counts = folder.counts(cells)
        self.booked: set[tuple[Path, int]] = set()

    def note(self, text: str) -> None:
        self.person.note(text)

    def done(self, job: Job) -> None:
        (seed_folder(job.run, job.seed) / "failed.json").unlink(missing_ok=True)
        if self.book(job):
            self.person.done(job)

    def retry(self, jobs: Sequence[Job], failure: Failure) -> list[Pack]:
        """Try cells that failed in company alone, where each is to blame for itself; those that had not begun, in
        company again. What would fail in the same way again is not tried again."""
        again: list[Pack] = []
        unbegun = [job for job in jobs if not seed_folder(job.run, job.seed).exists()]
        if len(unbegun) == len(jobs):  # nobody knows who is to blame
            unbegun = []
        for job in jobs:
            key = (job.run, job.seed)
            if is_done(*key):
                self.done(job)
                continue
            if job in unbegun:
                continue
            self.tries[key] = self.tries.get(key, 0) + (len(jobs) == 1)
            if self.tries[key] < TRIES and not (len(jobs) == 1 and issubclass(failure.kind, Diverged | BadRequest)):
                again.append([job])
            else:
                self.failed(job, failure)
        return [*again, unbegun] if unbegun else again

    def failed(self, job: Job, failure: Failure) -> None:
        place = seed_folder(job.run, job.seed)
        place.mkdir(parents=True, exist_ok=True)
        tries = self.tries.get((job.run, job.seed), 1)
        about = {"error": failure.message, "traceback": failure.traceback, "tries": tries, "when": time.time()}
        write_json(place / "failed.json", about)
        if self.book(job):
            self.person.failed(job, failure)

    def book(self, job: Job) -> bool:
        """Count a job that is settled; return whether this is news."""
        if (job.run, job.seed) in self.booked:
            return False
        self.booked.add((job.run, job.seed))
        before, status = self.folder.refresh(Cell(job.run.name, job.seed))
        self.counts[before] -= 1
        self.counts[status] += 1
        return True


def sweep(study_file: Path | None, out: Path, engine: Engine, person: Observer) -> dict[str, int]:
    """Runs what is missing of a study; gives how many cells are done and failed."""
    source = study_file or out / "study.toml"
    if not source.is_file():
        why = "is a folder" if source.is_dir() else "is not there"
        raise BadRequest(f"a sweep takes a study as a TOML file: {source} {why}")
    configs = read_study(source)
    if out.exists() and not out.is_dir():
        raise BadRequest(f"--out takes a folder; {out} is a file")
    if out.is_dir() and {path.name for path in out.iterdir()} - {HELD, HOLDER} and not (out / "study.toml").exists():
        raise BadRequest(f"--out takes a new folder or that of a study; {out} holds something else")
    refuse_what_cannot_be(configs, out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequest(f"--out takes a folder that can be written; {out}: {error.strerror}") from None
    with held(out):
        if study_file is not None:
            write_changed(out / "study.toml", settled(study_file).encode())
        behind = cache(files_behind)
        runs = dict(prepare(out, config, person.note, behind) for config in configs)
        cells = cells_of(configs)
        note_cells(out, cells)
        packs = waiting(runs)
        driver = Sweep(StudyFolder(out, person.note), cells, person)
        person.begin(sum(driver.counts.values()), driver.counts["done"])
        if packs:
            engine(packs, driver)
        for run, config in runs.items():
            summarise(run, config)
        return driver.counts


def refuse_what_cannot_be(configs: list[Config], out: Path) -> None:
    """Builds one learner of every kind, on this machine's processor: others may have the GPUs."""
    for config in configs:
        options = config.options
        if not (out / "runs" / folder_name(config)).exists():  # what was begun goes on
            config.check_asked(defaults(options.data, options.method, options.debias))
    kinds = {
        (config.options.data, config.options.limit, config.stream, config.options.method, config.net): config
        for config in configs
    }
    for log in {config.options.log for config in configs}:
        trackers.check(log)
    for config in kinds.values():
        seed = config.options.first_seed
        build_learner(config, build_stream(config, seed), seed, device="cpu")


def prepare(
    out: Path,
    config: Config,
    note: Callable[[str], None],
    behind: Callable[[str | None, str, str], dict[str, str | None]],
) -> tuple[Path, Config]:
    """The run folder of a configuration, with what it holds, seeds of earlier versions of the study as well; and what
    is run there."""
    run, seeds, as_run = out / "runs" / folder_name(config), config.seeds, config.as_run()
    if (run / "config.toml").exists():
        _, noted = load(run)
        seeds = range(min(noted.seeds.start, seeds.start), max(noted.seeds.stop, seeds.stop))
        if noted.fingerprint() == config.fingerprint():  # from before folders noted what is run: it stays what it is
            as_run = config
    config = as_run
    options = replace(config.options, first_seed=seeds.start, seeds=len(seeds))
    run.mkdir(parents=True, exist_ok=True)
    write_changed(run / "config.toml", to_toml(replace(config, options=options), "run").encode())
    note_environment(run, config, not all(is_done(run, seed) for seed in config.seeds), note, behind)
    return run, config


def waiting(runs: dict[Path, Config]) -> list[Pack]:
    """The cells that have no result, in packs for one worker each; every configuration's first seed comes first, so
    that whatever is wrong with one shows early."""
    packs: list[tuple[int, Pack]] = []
    for run, config in runs.items():
        missing = [Job(config, run.resolve(), seed) for seed in config.seeds if not is_done(run, seed)]
        if config.options.device == "cuda" and missing:
            packs.append((0, missing))
        else:
            packs += [(job.seed, [job]) for job in missing]
    return [pack for _, pack in sorted(packs, key=lambda item: item[0])]


def summarise(run: Path, config: Config) -> None:
    """summary.json of a configuration all of whose seeds are done."""
    if all(is_done(run, seed) for seed in config.seeds):
        write_json(run / "summary.json", RunFolder(run, config.noted()).summary())


@contextmanager
def held(out: Path) -> Iterator[None]:
    """Hold a study as its only sweep; refuse where another one does, by its process and host."""
    holder = out / HOLDER
    try:
        with locked(out / HELD, wait=1.0):  # perhaps somebody only asks whether it is held
            write_json(holder, {"process": os.getpid(), "host": socket.gethostname()})
            yield
    except Held:
        try:
            noted = json.loads(holder.read_text())
            who = f"process {noted['process']} on {noted['host']}"
        except (OSError, ValueError, KeyError, TypeError):
            who = "another process"
        raise BadRequest(f"{out} is being swept by {who}") from None
