"""Tune: trials on one seed, then the best of them on fresh seeds; the best mean there is the choice.

What OUT holds:

    OUT/tune.toml       what was asked for: `droptop tune --out OUT` goes on with it
    OUT/optuna.log      Optuna's journal: every trial, with what it reached after each task
    OUT/runs/trial-N/   a run folder per trial, as everywhere; those that are confirmed have more seeds
    OUT/runs/usual/     the options as they are without tuning, on the seeds that confirm
    OUT/tune.json       what was found so far
    OUT/best.toml       the choice: `droptop run --config OUT/best.toml`

Every configuration in it holds images out of training and is tested on those; test sets are never read. One command at
a time holds the folder. One that is killed goes on: trials that ended are not repeated, others from their checkpoints.
"""

import itertools
from contextlib import suppress
from pathlib import Path
from typing import Any

from droptop.data.image_cache import sharing_reads
from droptop.errors import BadRequest, Diverged, DroptopError, require
from droptop.options import name_of
from droptop.runs.build import build_learner, build_stream
from droptop.runs.config import Config, defaults
from droptop.runs.folder import TUNE, is_done, whole_result
from droptop.runs.whole_batches import left_out_note
from droptop.sweeps.study_folder import HELD, HOLDER, StudyFolder
from droptop.sweeps.sweep import Engine, Pack, Sweep, held
from droptop.sweeps.tuning.confirming import confirm, write_found
from droptop.sweeps.tuning.request import TuneRequest, load_request
from droptop.sweeps.tuning.run_folders import prepared_by
from droptop.sweeps.tuning.space import Choice, Range, number_of_settings, settings_of
from droptop.sweeps.tuning.study import Study, Trial, optuna
from droptop.sweeps.tuning.trial_run import TrialRun, number_of, was_pruned, write_pruned
from droptop.sweeps.tuning.tune_json import BEST, figure, trial_folder
from droptop.system.devices import each, is_cuda
from droptop.system.files import write_atomic, write_changed
from droptop.training.observer import Job, Observer
from droptop.training.workers import Failure

ON_A_GPU = 5  # trials at once that keep one busy
GIVEN_UP = 3  # trials that fail before any has ended, after which none is begun


class Trials(Sweep):
    """Give an engine trials, as many at once as it has room for, and tell the study what they reached."""

    def __init__(self, out: Path, request: TuneRequest, study: Study, observer: Observer, at_once: int | None) -> None:
        super().__init__(StudyFolder(out, observer.note), [], observer)
        self.out, self.request, self.study = out, request, study
        device = request.config.options.device
        self.on_gpu, self.workers = is_cuda(device), max(1, len(each(device)))
        self.at_once = at_once
        self.first_task = request.first_task()
        self.prepared = prepared_by(observer)
        trials = study.trials()
        self.left = wanted(request) - sum(trial.state in ("done", "pruned", "running") for trial in trials)
        self.begun = [trial.number for trial in trials if trial.state == "running"]
        self.in_flight, self.failures = set[int](), 0
        self.any_done = any(trial.state == "done" for trial in trials)

    def more(self) -> list[Pack]:
        """Return the next trial, or on a GPU several; nothing while as many are in flight as may be at once."""
        room = ON_A_GPU if self.on_gpu else 1
        if self.at_once is not None:
            share = -(-self.at_once // self.workers)  # of each GPU
            room = min(share if self.on_gpu else 1, self.at_once - len(self.in_flight))
        pack: Pack = []
        while len(pack) < room and (job := self.next_trial()) is not None:
            pack.append(job)
        return [pack] if pack else []

    def next_trial(self) -> Job | None:
        """Return the next trial to train: one that was begun before, or a new one; None where there are no more."""
        while True:
            if self.begun:
                trial = self.study.ask_again(self.begun.pop(0))
            elif self.left > 0 and (self.any_done or self.failures < GIVEN_UP):
                self.left -= 1
                trial = self.study.ask()
            else:
                return None
            if (job := self.job_of(trial)) is not None:
                return job

    def job_of(self, trial: Trial) -> Job | None:
        """Return the job of a trial; None where its end is known already, which the study is then told."""
        run = trial_folder(self.out, trial.number)
        ended = (other for other in self.study.trials() if other.state in ("done", "pruned"))
        same = next((other for other in ended if other.settings == trial.settings), None)
        seed, name = self.request.search.seed, f"trial {trial.number}"
        try:
            asked = self.request.on_held_out(trial.settings, self.first_task, range(seed, seed + 1))
            asked.check_kappa_0(defaults_of(asked))
        except BadRequest as error:
            self.close(trial.number, None, why=str(error))
            return None
        self.in_flight.add(trial.number)
        job = Job(self.prepared(run, asked), run.resolve(), seed, TrialRun, name)
        if same is not None and not run_has_begun(run, seed):
            self.close(trial.number, same.value, why=same.why or f"as trial {same.number}")
            self.observer.done(job)
            return None
        if is_done(run, seed, job.config.configuration()) or was_pruned(run, seed):
            self.done(job)
            return None
        return job

    def done(self, job: Job) -> None:
        """Tell the study what a trial reached, or that it was ended early."""
        result = whole_result(job.run, job.seed)
        if result is None and not was_pruned(job.run, job.seed):  # nobody knows why: it is not to be lost in silence
            self.failed(job, Failure(DroptopError, f"{job.name} ended without a result", ""))
            return
        self.close(number_of(job.run), None if result is None else figure(result))
        super().done(job)

    def failed(self, job: Job, failure: Failure) -> None:
        """Tell the study that a trial failed; of one whose loss was not finite, that its settings are bad."""
        if issubclass(failure.kind, Diverged | BadRequest):
            write_pruned(job.run, job.seed, failure.message)
            self.close(number_of(job.run), None, why=failure.message)
            super().done(job)
            return
        self.failures += 1
        self.close(number_of(job.run), None, failed=True, why=failure.message.strip().splitlines()[-1])
        super().failed(job, failure)

    def close(self, number: int, value: float | None, failed: bool = False, why: str = "") -> None:
        """Tell the study the end of a trial, and write what is found so far."""
        self.study.tell(number, value, failed, why)
        self.in_flight.discard(number)
        self.any_done |= value is not None
        write_found(self.out, self.request, self.study)


def tune(
    request: TuneRequest, out: Path, engine: Engine, observer: Observer, at_once: int | None = None
) -> dict[str, Any]:
    """Run what is missing of a tuning; return what tune.json has, with the choice.

    Raise BadRequest, before anything is written, for what cannot be run or a folder that holds something else; and
    DroptopError where no trial came to its end.
    """
    optuna()
    require(at_once is None or at_once >= 1, "at_once", "a number of trials from 1", at_once)
    request = continued(request, out)
    for note in check(request):
        observer.note(note)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequest(f"--out takes a folder that can be written; {out}: {error.strerror}") from None
    with held(out):
        write_changed(out / TUNE, request.toml().encode())
        study = Study(out, request.space, request.search.seed)
        study.propose(proposals(request))
        study.propose_failed()
        trials = Trials(out, request, study, observer, at_once)
        observer.begin(wanted(request), sum(trial.state in ("done", "pruned") for trial in study.trials()))
        engine([], trials)
        if not trials.any_done:
            reasons = [trial.why for trial in study.trials() if trial.why]
            raise DroptopError(f"no trial came to its end: {reasons[-1] if reasons else 'none was begun'}")
        found = confirm(out, request, study, engine, observer)
        write_atomic(out / BEST, request.best(found["chosen"]["settings"]).encode())
        return found


def continued(request: TuneRequest, out: Path) -> TuneRequest:
    """Return the request as a folder goes on with it; refuse a folder that holds something else, or another tuning."""
    if out.exists() and not out.is_dir():
        raise BadRequest(f"--out takes a folder; {out} is a file")
    if not (out / TUNE).is_file():
        if out.is_dir() and {path.name for path in out.iterdir()} - {HELD, HOLDER}:
            raise BadRequest(f"--out takes a new folder or that of a tuning; {out} holds something else")
        return request
    if not load_request(out).goes_on(request):
        raise BadRequest(f"--out takes a new folder, or that of the same tuning with more trials; {out} is of another")
    return request


def check(request: TuneRequest) -> list[str]:
    """Return what the user should know; raise BadRequest for what cannot be run.

    A learner is built at both ends of every option, so that what is impossible shows before anything starts.
    """
    seed, space, first_task = request.search.seed, request.space, request.first_task()
    notes = list[str]()
    edges: list[dict[str, Any]] = [{}, *({path: edge} for path, values in space.items() for edge in values.edges)]
    with sharing_reads():
        for settings in edges:
            config = request.on_held_out(settings, first_task, range(seed, seed + 1))
            stream = build_stream(config, seed)
            try:
                build_learner(config, stream, seed, device="cpu")
            except BadRequest as error:
                said = f"--over {name_of(next(iter(settings)))}: " if settings else ""
                raise BadRequest(f"{said}{error}") from None
            notes += left_out_note(stream) if not settings else []
        for fresh in request.search.fresh:
            build_stream(config, fresh)  # refuses a seed that the stream does not have
    if (size := number_of_settings(space)) is not None and size < request.search.trials:
        notes.append(f"there are {size} settings: {size} trials try all of them")
    return notes


def wanted(request: TuneRequest) -> int:
    """Return how many trials are to come to an end: no more than there are settings."""
    size = number_of_settings(request.space)
    return request.search.trials if size is None else min(size, request.search.trials)


def proposals(request: TuneRequest) -> list[dict[str, Any]]:
    """Return the settings that are tried before any are drawn: the usual ones, and of a small space all of them."""
    space = request.space
    own = settings_of(space, request.config)
    first = [] if own is None else [own]
    size = number_of_settings(space)
    if size is None or size > request.search.trials:
        return first
    every = [dict(zip(space, values)) for values in itertools.product(*map(all_values, space.values()))]
    return [*first, *(settings for settings in every if settings != own)]


def all_values(values: Range | Choice) -> tuple[Any, ...]:
    """Return all values of a list, or of a range of whole numbers."""
    return tuple(range(int(values.low), int(values.high) + 1)) if isinstance(values, Range) else values.values


def run_has_begun(run: Path, seed: int) -> bool:
    """Return whether a seed of a trial has left anything that it would go on with."""
    with suppress(OSError):
        return any((run / f"seed-{seed}" / "checkpoints").glob("*.json"))
    return False


def defaults_of(config: Config) -> Config:
    """Return the configuration that the names of another one stand for."""
    options = config.options
    return defaults(options.data, options.method, options.debias, device=options.device)
