"""Runs the cells of a study that are not done yet, by one engine or another.

    STUDY/study.toml         what was asked for, as it was last asked for
    STUDY/index.sqlite       where every cell stands; can be deleted
    STUDY/runs/NAME/         a run folder a configuration: config.toml, seed-K/{metrics.jsonl,checkpoints/,result.json}
    STUDY/runs/NAME/seed-K/failed.json    of a cell that failed twice: why

One sweep at a time holds a study. It writes the index; whoever runs a cell locks that cell's folder, so that none has
two writers. A cell that fails is tried once more, from its last checkpoint; then it is marked, and the rest goes on.
"""

import fcntl
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Protocol

from droptop import trackers
from droptop.config import Config, defaults, to_toml
from droptop.engine.build import build_learner, build_stream
from droptop.engine.pool import Failure, Job
from droptop.engine.run import files_behind, load, note_environment
from droptop.engine.train import Progress
from droptop.errors import BadRequest, Diverged
from droptop.methods import own
from droptop.results import folder
from droptop.study.grid import folder_name, read_study, settled
from droptop.study.index import Cell, Index

Pack = list[Job]  # cells that one worker runs together: on a GPU those of a configuration, or of several
TRIES = 2
HELD = ".sweep"  # locked by the sweep that is at work


class Driver(Protocol):
    """What an engine tells the sweep."""

    def begin(self, jobs: int) -> None: ...
    def progress(self, job: Job, progress: Progress) -> None: ...
    def done(self, job: Job) -> None: ...
    def failed(self, jobs: Sequence[Job], failure: Failure) -> list[Pack]:
        """What to try again."""
        ...

    def note(self, text: str) -> None: ...


Engine = Callable[[list[Pack], Driver], None]


class Watcher(Protocol):
    """Whoever shows a person how a study goes on."""

    def start(self, done: int, total: int) -> None: ...
    def cell(self, job: Job, status: str, done: int, failed: int) -> None: ...
    def note(self, text: str) -> None: ...


class Sweep:
    """Keeps the books while an engine works."""

    def __init__(self, study: Path, index: Index, watcher: Watcher) -> None:
        self.study, self.index, self.watcher = study, index, watcher
        self.tries: dict[tuple[Path, int], int] = {}
        self.counts = index.counts(asked(study))
        self.booked: set[tuple[Path, int]] = set()

    def begin(self, jobs: int) -> None:
        """Known already."""

    def progress(self, job: Job, progress: Progress) -> None:
        """Cells are what is counted, not their steps."""

    def note(self, text: str) -> None:
        self.watcher.note(text)

    def done(self, job: Job) -> None:
        (folder.seed_folder(job.run, job.seed) / "failed.json").unlink(missing_ok=True)
        self.book(job)

    def failed(self, jobs: Sequence[Job], failure: Failure) -> list[Pack]:
        """Cells that failed in company are tried alone, where each is to blame for itself; those that had not begun, in
        company again. What would fail in the same way again is not tried again."""
        again: list[Pack] = []
        unbegun = [job for job in jobs if not folder.seed_folder(job.run, job.seed).exists()]
        if len(unbegun) == len(jobs):  # nobody knows who is to blame
            unbegun = []
        for job in jobs:
            key = (job.run, job.seed)
            if folder.is_done(*key):
                self.done(job)
                continue
            if job in unbegun:
                continue
            self.tries[key] = self.tries.get(key, 0) + (len(jobs) == 1)
            if self.tries[key] < TRIES and not (len(jobs) == 1 and issubclass(failure.kind, Diverged | BadRequest)):
                again.append([job])
                continue
            place = folder.seed_folder(job.run, job.seed)
            place.mkdir(parents=True, exist_ok=True)
            folder.write_json(
                place / "failed.json",
                {
                    "error": failure.message,
                    "traceback": failure.traceback,
                    "tries": self.tries[key],
                    "when": time.time(),
                },
            )
            self.book(job)
        return [*again, unbegun] if unbegun else again

    def book(self, job: Job) -> None:
        if (job.run, job.seed) in self.booked:
            return
        self.booked.add((job.run, job.seed))
        before, status = self.index.look(Cell(job.run.name, job.seed))
        self.counts[before] -= 1
        self.counts[status] += 1
        self.watcher.cell(job, status, self.counts["done"], self.counts["failed"])


def sweep(study_file: Path | None, out: Path, engine: Engine, watcher: Watcher) -> dict[str, int]:
    """Runs what is missing of a study; gives how many cells are done and failed."""
    source = study_file or out / "study.toml"
    if not source.is_file():
        why = "is a folder" if source.is_dir() else "is not there"
        raise BadRequest(f"a sweep takes a study as a TOML file: {source} {why}")
    configs = read_study(source)
    if out.exists() and not out.is_dir():
        raise BadRequest(f"--out takes a folder; {out} is a file")
    if out.is_dir() and {path.name for path in out.iterdir()} - {HELD} and not (out / "study.toml").exists():
        raise BadRequest(f"--out takes a new folder or that of a study; {out} holds something else")
    refuse_what_cannot_be(configs, out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequest(f"--out takes a folder that can be written; {out}: {error.strerror}") from None
    with held(out):
        kept = out / "study.toml"
        text = None if study_file is None else settled(study_file).encode()
        if text is not None:
            folder.keep(kept, text)
        behind = cache(files_behind)
        runs = dict(prepare(out, config, watcher.note, behind) for config in configs)
        index = Index(out, writes=True, note=watcher.note)
        try:
            packs = waiting(runs)
            index.look_again(Cell(job.run.name, job.seed) for pack in packs for job in pack)
            driver = Sweep(out, index, watcher)
            watcher.start(driver.counts["done"], sum(driver.counts.values()))
            if packs:
                engine(packs, driver)
            for run, config in runs.items():
                summarise(run, config)
            return driver.counts
        finally:
            index.close()


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


def asked(out: Path) -> list[Cell]:
    """The cells that a study's own file asks for; folders may hold more, of earlier versions of it. Where the file of a
    method is gone, nobody knows what that asks for, and it is whatever the folders hold."""
    try:
        return [Cell(folder_name(config), seed) for config in read_study(out / "study.toml") for seed in config.seeds]
    except own.Gone as error:
        warnings.warn(f"{error}; cells are those that {out} holds", stacklevel=2)
    cells = []
    for run in sorted(path.parent for path in (out / "runs").glob("*/config.toml")):
        with suppress(BadRequest):  # the index says so
            cells += [Cell(run.name, seed) for seed in load(run)[1].seeds]
    return cells


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
    folder.keep(run / "config.toml", to_toml(replace(config, options=options), "run").encode())
    note_environment(run, config, not all(folder.is_done(run, seed) for seed in config.seeds), note, behind)
    return run, config


def waiting(runs: dict[Path, Config]) -> list[Pack]:
    """The cells that have no result, in packs for one worker each; every configuration's first seed comes first, so
    that whatever is wrong with one shows early."""
    packs: list[tuple[int, Pack]] = []
    for run, config in runs.items():
        missing = [Job(config, run.resolve(), seed) for seed in config.seeds if not folder.is_done(run, seed)]
        if config.options.device == "cuda" and missing:
            packs.append((0, missing))
        else:
            packs += [(job.seed, [job]) for job in missing]
    return [pack for _, pack in sorted(packs, key=lambda item: item[0])]


def summarise(run: Path, config: Config) -> None:
    """summary.json of a configuration all of whose seeds are done."""
    if all(folder.is_done(run, seed) for seed in config.seeds):
        folder.write_json(run / "summary.json", folder.summarise(config, run))


@contextmanager
def held(out: Path) -> Iterator[None]:
    """One sweep a study; a second one is told who has it. The system lets go when that process ends, however."""
    with (out / HELD).open("a+") as file:
        for attempt in range(10):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:  # perhaps only somebody who asks whether it is held
                time.sleep(0.1 if attempt < 9 else 0)
        else:
            file.seek(0)
            try:
                holder = json.loads(file.read())
                who = f"process {holder['process']} on {holder['host']}"
            except (ValueError, KeyError, TypeError):
                who = "another process"
            raise BadRequest(f"{out} is being swept by {who}")
        file.truncate(0)
        file.write(json.dumps({"process": os.getpid(), "host": socket.gethostname()}))
        file.flush()
        yield
