"""Runs those cells of a study that are not done yet, by one engine or another.

One sweep at a time holds a study. Whoever runs a cell locks its folder, so no cell has two writers. A cell that fails
is tried once more, from its last checkpoint; if it fails again, the sweep marks it as failed and goes on with the rest.
"""

import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from droptop import trackers
from droptop.errors import BadRequest, Diverged, typed
from droptop.runs.build import build_learner, build_stream
from droptop.runs.config import Config, defaults, override
from droptop.runs.flags import record_flags
from droptop.runs.folder import RunFolder, is_done, seed_folder
from droptop.runs.on_cpu import lighter, said_of
from droptop.runs.plan import Plan
from droptop.runs.requests import FileHash, file_hash, load, record_environment
from droptop.runs.trust import remember_places
from droptop.runs.whole_batches import left_out_note
from droptop.sweeps.grid import absolute_text, cells_of, folder_name, names_in, read_study
from droptop.sweeps.study_folder import HELD, HOLDER, Cell, StudyFolder, is_edited, record_cells
from droptop.system.devices import is_cuda
from droptop.system.files import write_changed, write_json
from droptop.system.json_files import read_json
from droptop.system.locks import Held, is_locked, locked, note_without_locks
from droptop.system.toml_files import sealed
from droptop.training.observer import Job, Observer
from droptop.training.workers import Failure

Pack = list[Job]  # cells that one worker runs together: on a GPU those of one configuration, or of several
TRIES = 2


class Driver(Observer):
    """Hear from an engine what became of cells, and decide what to try again."""

    def retry(self, jobs: Sequence[Job], failure: Failure) -> list[Pack]:
        """Take jobs that failed; return what to try again, in packs."""
        raise NotImplementedError

    def more(self) -> list[Pack]:
        """Return what to run next, where a worker has nothing left to do: for a worker each, in packs; usually nothing.

        A driver that decides what to run by what is done, as tuning does, gives an engine no packs at the start.
        """
        return []


Engine = Callable[[list[Pack], Driver], None]


class Sweep(Driver):
    """Keep count of the cells while an engine works, and tell an observer of each cell that is done or has failed."""

    def __init__(self, folder: StudyFolder, cells: Sequence[Cell], observer: Observer) -> None:
        self.folder, self.observer = folder, observer
        self.tries: dict[tuple[Path, int], int] = {}
        self.counts = folder.counts(cells)
        self.counted: set[tuple[Path, int]] = set()

    def note(self, text: str) -> None:
        self.observer.note(text)

    def done(self, job: Job) -> None:
        (seed_folder(job.run, job.seed) / "failed.json").unlink(missing_ok=True)
        if self.count(job):
            self.observer.done(job)

    def retry(self, jobs: Sequence[Job], failure: Failure) -> list[Pack]:
        """Return the packs to try again, of jobs that failed.

        Jobs that failed together are tried alone, so that only the one to blame fails again; those that had not begun
        are tried together again. A job that would fail in the same way again is not tried again.
        """
        again: list[Pack] = []
        unbegun = [job for job in jobs if not seed_folder(job.run, job.seed).exists()]
        if len(unbegun) == len(jobs):  # nobody knows which one is to blame
            unbegun = []
        for job in jobs:
            key = (job.run, job.seed)
            if is_done(*key, job.config.configuration()):
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
        """Mark a cell as failed, with the reason, in its folder."""
        place = seed_folder(job.run, job.seed)
        place.mkdir(exist_ok=True)
        tries = self.tries.get((job.run, job.seed), 1)
        about = {"error": failure.message, "traceback": failure.traceback, "tries": tries, "when": time.time()}
        write_json(place / "failed.json", about)
        if self.count(job):
            self.observer.failed(job, failure)

    def count(self, job: Job) -> bool:
        """Count a job that is done or has failed; return whether it had not been counted before."""
        if (job.run, job.seed) in self.counted:
            return False
        self.counted.add((job.run, job.seed))
        before, status = self.folder.refresh(Cell(job.run.name, job.seed))
        self.counts[before] -= 1
        self.counts[status] += 1
        return True


def sweep(study_file: Path | None, out: Path, engine: Engine, observer: Observer) -> dict[str, int]:
    """Run what is missing of a study; return how many cells are done, waiting and failed."""
    source = study_file or out / "study.toml"
    if not source.is_file():
        why = "is a folder" if source.is_dir() else "is not there"
        raise BadRequest(f"a sweep takes a study as a TOML file: {source} {why}")
    if study_file is None and is_edited(out):
        again = typed("sweep", source, "--out", out)
        raise BadRequest(f"{source} has changed since droptop wrote it: if that was you, {again} sweeps it as it is")
    configs = read_study(source)
    if out.exists() and not out.is_dir():
        raise BadRequest(f"--out takes a folder; {out} is a file")
    begun = ("study.toml", HELD)  # the beginnings of what a sweep leaves that is killed as it begins
    held_here = [path.name for path in out.iterdir()] if out.is_dir() else []
    if "study.toml" not in held_here and not all(name.startswith(begun) for name in held_here):
        raise BadRequest(f"--out takes a new folder or that of a study; {out} holds something else")
    if is_locked(out, HELD):
        raise held_by(out)
    given = names_in(source)
    configs = [as_begun(config, given, out) for config in configs]
    notes = check(configs, out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequest(f"--out takes a folder that can be written; {out}: {error.strerror}") from None
    with held(out):
        if study_file is not None:
            write_changed(out / "study.toml", sealed(absolute_text(study_file)).encode())
        remember_places(config.noted() for config in configs)
        new = (config for config in configs if not (out / "runs" / folder_name(config)).exists())
        if note := said_of({path: values for config in new for path, values in lighter(config, given).items()}):
            notes.append(note)
        for note in notes:
            observer.note(note)
        note_without_locks(out / HELD, observer.note)
        hashed = cache(file_hash)
        folders = {out / "runs" / folder_name(config): config for config in configs}
        runs = {run: prepare(run, config, observer.note, hashed) for run, config in folders.items()}
        cells = cells_of(configs)
        record_cells(out, cells)
        packs = waiting(runs)
        driver = Sweep(StudyFolder(out, observer.note), cells, observer)
        observer.begin(sum(driver.counts.values()), driver.counts["done"])
        if packs:
            engine(packs, driver)
        for run, config in runs.items():
            summarise(run, config)
        return driver.counts


def as_begun(config: Config, given: Iterable[str], out: Path) -> Config:
    """Return a configuration; where its folder was begun before a CPU had defaults of its own, as it was begun."""
    on_gpu = {path: default.on_gpu for path, default in lighter(config, given).items()}
    older = override(config, on_gpu)
    return older if on_gpu and (out / "runs" / folder_name(older)).exists() else config


def check(configs: list[Config], out: Path) -> list[str]:
    """Return what the user should know; raise BadRequest if a configuration cannot be run.

    Build one learner of every kind, on the CPU of this machine: the GPUs may be on other machines.
    """
    for config in configs:
        options = config.options
        if not (out / "runs" / folder_name(config)).exists():  # what an older version began goes on
            config.check_kappa_0(defaults(options.data, options.method, options.debias))
    kinds = {
        (config.options.data, config.options.limit, config.stream, config.options.method, config.net): config
        for config in configs
    }
    for log in {config.options.log for config in configs}:
        trackers.check(log)
    notes = []
    for config in kinds.values():
        seed = config.options.first_seed
        stream = build_stream(config, seed)
        build_learner(config, stream, seed, device="cpu")
        notes += left_out_note(stream)
    return list(dict.fromkeys(notes))


def prepare(run: Path, config: Config, note: Callable[[str], None], hashed: FileHash) -> Config:
    """Make or update the run folder of a configuration; return the configuration that is run there.

    Its config.toml keeps the seeds that earlier versions of the study asked for.
    """
    seeds, asked = config.seeds, config
    config = asked.with_effective_kappa_0()
    if (run / "config.toml").exists():
        (recorded,) = load(run).arms.values()
        seeds = range(min(recorded.seeds.start, seeds.start), max(recorded.seeds.stop, seeds.stop))
        if recorded.fingerprint() == asked.fingerprint():  # an older folder, which holds what was asked for, stays so
            config = asked
    kept = replace(config, options=replace(config.options, first_seed=seeds.start, seeds=len(seeds)))
    unfinished = not done(run, config)
    run.mkdir(parents=True, exist_ok=True)
    plan = Plan("run", {kept.options.debias: kept})
    write_changed(run / "config.toml", plan.toml().encode())
    record_environment(run, config, unfinished, note, hashed)
    if unfinished:
        record_flags(run, plan)
    return config


def waiting(runs: dict[Path, Config]) -> list[Pack]:
    """Return the cells without a result, in packs for one worker each.

    The first seed of every configuration comes first, so that whatever is wrong with a configuration shows early.
    """
    packs: list[tuple[int, Pack]] = []
    for run, config in runs.items():
        ours = config.configuration()
        missing = [Job(config, run.resolve(), seed) for seed in config.seeds if not is_done(run, seed, ours)]
        if is_cuda(config.options.device) and missing:
            packs.append((0, missing))
        else:
            packs += [(job.seed, [job]) for job in missing]
    return [pack for _, pack in sorted(packs, key=lambda item: item[0])]


def done(run: Path, config: Config) -> bool:
    """Return whether every seed of a configuration has its result."""
    ours = config.configuration()
    return all(is_done(run, seed, ours) for seed in config.seeds)


def summarise(run: Path, config: Config) -> None:
    """Write summary.json of a configuration, unless one of its seeds is not done."""
    if done(run, config):
        write_json(run / "summary.json", RunFolder(run, config.noted()).summary())


@contextmanager
def held(out: Path) -> Iterator[None]:
    """Hold a study as its only sweep; raise BadRequest if another one does."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(out / HELD, wait=1.0))  # `droptop status` holds it for a moment
        except Held:
            raise held_by(out) from None
        write_json(out / HOLDER, {"process": os.getpid(), "host": socket.gethostname()})
        yield


def held_by(out: Path) -> BadRequest:
    """Return the refusal of a study that another sweep holds, with its process and host."""
    try:
        entry = read_json(out / HOLDER)
        who = f"process {entry['process']} on {entry['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        who = "another process"
    return BadRequest(f"{out} is being swept by {who}")
