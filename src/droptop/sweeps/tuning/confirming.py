"""The best trials and the usual options on fresh seeds: their means make the choice; and tune.json, which says so."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from droptop.errors import DroptopError
from droptop.options import flatten
from droptop.runs.config import Config
from droptop.runs.folder import is_done, whole_result
from droptop.sweeps.study_folder import StudyFolder
from droptop.sweeps.sweep import Engine, Pack, Sweep
from droptop.sweeps.tuning.request import TuneRequest
from droptop.sweeps.tuning.run_folders import prepared_by
from droptop.sweeps.tuning.space import Space, settings_of
from droptop.sweeps.tuning.study import Study
from droptop.sweeps.tuning.tune_json import (
    FOUND,
    USUAL,
    Confirmed,
    as_dict,
    best_trials,
    choose,
    figure,
    read_found,
    trial_folder,
)
from droptop.system.devices import is_cuda
from droptop.system.sealed_json import write_sealed
from droptop.training.observer import Job, Observer


def confirm(out: Path, request: TuneRequest, study: Study, engine: Engine, observer: Observer) -> dict[str, Any]:
    """Run the best trials and the usual options on fresh seeds; return what was found, with the choice."""
    seeds, trials = request.search.fresh, [trial._asdict() for trial in study.trials()]
    runs = contenders(out, request, trials)
    jobs, first_task, prepared = list[Job](), request.first_task(), prepared_by(observer)
    for run, settings in runs.items():
        config = prepared(run, request.on_held_out(settings, first_task, seeds))
        jobs += [Job(config, run.resolve(), seed, name=f"{run.name} seed {seed}") for seed in seeds]
    left = [job for job in jobs if not is_done(job.run, job.seed, job.config.configuration())]
    on_gpu = is_cuda(request.config.options.device)
    packs: list[Pack] = [left] if on_gpu else [[job] for job in left]
    observer.begin(len(jobs), len(jobs) - len(left))
    if left:
        observer.note(f"confirming {len(runs)} settings on fresh seeds: {len(left)} of {len(jobs)} runs are to come")
        engine(packs, Sweep(StudyFolder(out, observer.note), [], observer))
    return write_found(out, request, study, confirmed_of(runs, request, trials))


def contenders(out: Path, request: TuneRequest, trials: list[dict[str, Any]]) -> dict[Path, dict[str, Any]]:
    """Return the settings to confirm by run folder: those of the best trials, and the usual ones."""
    best = best_trials(trials, request.search.confirm)
    runs = {trial_folder(out, trial["number"]): trial["settings"] for trial in best}
    usual = usual_settings(request.space, request.config)
    if usual in runs.values():
        return runs
    tried = [trial["number"] for trial in trials if trial["settings"] == usual and trial["state"] == "done"]
    return runs | {trial_folder(out, tried[0]) if tried else out / "runs" / USUAL: usual}


def confirmed_of(
    runs: dict[Path, dict[str, Any]], request: TuneRequest, trials: list[dict[str, Any]]
) -> list[Confirmed]:
    """Return what settings reached on fresh seeds, without those of which a seed failed: they would be no fair mean."""
    reached = {f"trial-{trial['number']}": trial["value"] for trial in trials}
    usual_lies_inside = settings_of(request.space, request.config) is not None
    confirmed = []
    for run, settings in runs.items():
        results = [whole_result(run, seed) for seed in request.search.fresh]
        values = [figure(result) for result in results if result is not None]
        if len(values) == len(results):
            eligible = run.name != USUAL or usual_lies_inside
            confirmed.append(Confirmed(run.name, settings, reached.get(run.name), values, eligible))
    if not any(each.eligible for each in confirmed):
        raise DroptopError("none of the best trials came to its end on all fresh seeds")
    return confirmed


def usual_settings(space: Space, config: Config) -> dict[str, Any]:
    """Return a configuration's own values of the options in a space."""
    values = flatten(config)
    return {path: values[path] for path in space}


def write_found(
    out: Path, request: TuneRequest, study: Study, confirmed: list[Confirmed] | None = None
) -> dict[str, Any]:
    """Write tune.json, and return what it has; the choice is in it once there are confirmed settings."""
    options = request.config.options
    found: dict[str, Any] = {"data": options.data, "method": options.method, "debias": options.debias}
    found |= asdict(request.search) | {"over": request.over, "fresh": list(request.search.fresh)}
    found |= {"usual": usual_settings(request.space, request.config), "command": request.command()}
    found["trials"] = [
        trial._asdict() | {"steps": list(trial.steps.values())} for trial in study.trials() if trial.state != "waiting"
    ]
    found["confirmed"] = [as_dict(each) for each in confirmed or ()]
    if confirmed:
        share, why = study.importance()
        chosen = choose(confirmed)
        found |= {"importance": share, "no_importance": why}
        found["chosen"] = {"name": chosen.name, "settings": chosen.settings}
    write_sealed(out / FOUND, found)
    return read_found(out)
