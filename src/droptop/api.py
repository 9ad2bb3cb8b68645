"""The commands `run`, `compare` and `resume` as functions; the command line calls the same code.

    comparison = droptop.compare("fashion-sticker", "er", ["droptop", "robust"], seeds=3, out="runs/first")
    print(comparison["effects"]["robust"]["removed"]["A_avg"])

Seeds are trained in processes of their own. A script that itself defines what they need, such as a function that gives
streams, is imported by them: it calls these functions under `if __name__ == "__main__":`, and is refused otherwise.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from droptop import trackers
from droptop.errors import DroptopError, require, typed
from droptop.options import NO_DEBIAS
from droptop.report.seed_progress import Plain
from droptop.report.shown import Comparison, RunResult, shown
from droptop.runs.compared import read_costs, read_tuned
from droptop.runs.config import check_name
from droptop.runs.folder import TUNED, RunFolder, read_request, seed_folder
from droptop.runs.manifest import write_manifest
from droptop.runs.moved import saying_where, with_data
from droptop.runs.own_objects import Data, Model, handed_over
from droptop.runs.plan import Plan, plan_of
from droptop.runs.reference import usual_debias
from droptop.runs.requests import begin, check, finished, load, with_device, with_seeds
from droptop.runs.trust import named, trusted
from droptop.sweeps.local import local
from droptop.sweeps.tuning.arms import (
    ASKED,
    Alike,
    awaits_tuning,
    begin_tuning,
    check_all,
    load_arms,
    tune_all,
    tuned_arms,
)
from droptop.sweeps.tuning.space import Over, read_space, said_in_python
from droptop.system import user_files
from droptop.system.files import write_json
from droptop.training.execute import execute, note_write_errors
from droptop.training.observer import Observer
from droptop.typed_options import Options


def run(
    data: Data = "fashion-sticker",
    method: str = "er",
    debias: str | None = "droptop",
    *,
    model: Model | None = None,
    first: str | None = None,
    last: str | None = None,
    out: str | Path,
    **options: Unpack[Options],
) -> RunResult:
    """Train one arm over all seeds.

    Args:
        data: The name of a stream, such as `split-cifar10` or `folder:PATH`; or a `Stream`, or a function of a seed
            that gives one.
        method: The name of a learner, or `FILE.py:CLASS`.
        debias: What to debias with, by name; None for nothing.
        model: Your own model, of which every seed trains a copy from the weights it has; or a function or class that
            makes one, with weights that the seed draws. Without one, droptop builds a net.
        first: Name of the model's submodule that gives the first map, as `droptop.attach` takes it.
        last: Name of the submodule that gives the last map.
        out: The folder of the run; it is new or empty.
        options: Any option of the command line, such as `seeds=3, lr=0.05`.

    Returns:
        What stands in `summary.json`, a dict that shows itself as a table: accuracies and forgetting per test set, a
        value per seed.

    Raises:
        BadRequest: The request cannot be met; nothing was written.
    """
    with handed_over(data=data, model=model) as names:
        chosen = NO_DEBIAS if debias is None else debias
        given = with_model(options, names, first, last)
        named({"method": method, "debias": chosen} | given)
        plan = plan_of("run", names["data"], method, chosen, given)
        return RunResult(start(plan, Path(out), False, None, Plain()))


def compare(
    data: Data = "fashion-sticker",
    method: str = "er",
    debias: str | Sequence[str] | None = None,
    *,
    model: Model | None = None,
    first: str | None = None,
    last: str | None = None,
    arms: Mapping[str, Mapping[str, Any]] | None = None,
    against: str | None = None,
    equal_cost: bool = False,
    tune: int | None = None,
    over: Over | None = None,
    tune_for: str | None = None,
    out: str | Path,
    **options: Unpack[Options],
) -> Comparison:
    """Train a method without debiasing and with it, in one arm or several, on the same seeds.

    Args:
        data: The name of a stream; or a `Stream`, or a function of a seed that gives one.
        method: The name of a learner, or a Python file that defines one.
        debias: What to debias with, by name or file, by default DropTop; a list has an arm for each. The plain arm
            comes by itself.
        model: Your own model, as `run` takes it; so are `first` and `last`.
        first: Name of the model's submodule that gives the first map.
        last: Name of the submodule that gives the last map.
        arms: Options of arms by the arms' names, in place of a list: `{"slow": {"lr": 0.01}}`. An arm without an option
            `debias` is debiased as `debias` says, or not at all.
        against: The reference, which all other arms are compared with: a debiasing, a method, an option with its value
            such as `"width=20"`, or the name of one of the arms; by default the plain arm.
        equal_cost: Whether to add, for every arm that costs more than the reference, a reference that costs the same,
            by more replay.
        tune: Number of trials to tune every arm by before they are compared, as `droptop.tune` does; by default none.
        over: What may vary then, as `droptop.tune` takes it: the same for all arms.
        tune_for: The arm that alone is tuned, such as `"none"`, whose options all others get: usual, and not fair.
        out: The folder of the comparison; each arm has a run folder in it.
        options: Any option of the command line, such as `seeds=3, gamma=5`; it holds for every arm that has it.

    Returns:
        What stands in `compare.json`, a dict that shows itself as a table: the arms, and what each changes beside the
        plain one, by test set.

    Raises:
        BadRequest: The request cannot be met; nothing was written.
    """
    chosen = debias or usual_debias(arms, against)
    several = [chosen] if isinstance(chosen, str) or not isinstance(chosen, Sequence) else chosen
    for each in several:
        check_name("debias", each)
    debiased = ",".join(several)
    with handed_over(data=data, model=model) as names:
        given = with_model(options, names, first, last)
        named({"method": method, "debias": debiased, "against": against} | given)
        for options_of_arm in (arms or {}).values():
            named(options_of_arm)
        plan = plan_of("compare", names["data"], method, debiased, given, arms, against=against)
        alike = None if tune is None else Alike(tune, said_in_python(over), tune_for)
        require(
            alike is not None or not (over or tune_for), "tune", "a number of trials beside over and tune_for", tune
        )
        return Comparison(start(plan, Path(out), equal_cost, alike, Plain()))


def resume(
    out: str | Path,
    seeds: int | None = None,
    *,
    device: str | None = None,
    data: Data | None = None,
    model: Model | None = None,
    trust: bool = False,
) -> RunResult | Comparison:
    """Continue a run or a comparison from where it stopped; on a CPU it ends with the same bytes as without a stop.

    Args:
        out: The folder that `run` or `compare` was given.
        seeds: How many seeds it is to have; None for as many as it was begun with.
        device: The device to go on with, of the kind that it began on, such as `cuda:1` or `cuda:all` where that was
            `cuda`; None for the one that its config.toml says.
        data: The stream that it began with, where that was an object; or where its images are now, if they have moved.
        model: The model that it began with, likewise.
        trust: Whether to execute Python files that only the folder names, and its copies of those that are gone or
            have changed; read them first.

    Returns:
        What `run` or `compare` would have returned.

    Raises:
        BadRequest: The folder holds neither a run nor a comparison, or one that has begun more than `seeds` seeds or
            with another stream or model, or on another kind of device.
    """
    out = Path(out)
    if awaits_tuning(out):
        require(device is None, "device", "a comparison whose arms are all tuned", out)
        with handed_over(read_request(out, ASKED).arms[-1].options, data=data, model=model):
            return shown(go_on_tuning(out, trust, Plain()))
    began = read_request(out).arms[-1].options
    with (
        handed_over(began, data=data, model=model) as names,
        trusted(out, trust, "trust=True"),
        saying_where(out, names.get("data")),
    ):
        plan = with_device(with_data(load(out), out, names.get("data")), out, device)
        return shown(carry_on(with_seeds(plan, out, seeds), out, Plain()))


def with_model(options: Options, names: dict[str, str], first: str | None, last: str | None) -> dict[str, Any]:
    """Return options with the name of the user's own model and those of its submodules, if there is one."""
    model = {"model": names.get("model"), "first": first, "last": last}
    return followed(options) | {name: value for name, value in model.items() if value is not None}


def followed(options: Options) -> dict[str, Any]:
    """Return options with a tracker class in `log` replaced by the name that the processes of seeds import it by."""
    log = options.get("log")
    return dict(options) | ({"log": trackers.name_of(log)} if isinstance(log, type) else {})


def start(plan: Plan, out: Path, equal_cost: bool, alike: Alike | None, observer: Observer) -> dict[str, Any]:
    """Make the folder of a run or comparison and train it; refuse a folder that holds something else.

    With `equal_cost`, a comparison gets plain arms that cost what its other arms cost; with `alike`, its arms are tuned
    before they are compared.
    """
    user_files.refuse_while_importing()
    asked = None if alike is None else tuned_arms(plan, alike)
    plan = plan.with_effective_kappa_0()
    if equal_cost:
        from droptop.bench.costs import refuse_changing_costs, with_equal_cost

        check(plan, out)
        if asked is not None:
            refuse_changing_costs(plan, read_space(asked.over, list(plan.arms.values())))
        plan = with_equal_cost(plan)
    if asked is not None:
        asked = replace(asked, plan=plan)
        for note in filter(None, (*check(plan, out), *check_all(asked), plan.note)):
            observer.note(note)
        begin_tuning(asked, out)
        return go_on_tuning(out, False, observer)
    for note in filter(None, (*begin(plan, out), plan.note)):
        observer.note(note)
    return carry_on(plan, out, observer)


def go_on_tuning(out: Path, trust: bool, observer: Observer) -> dict[str, Any]:
    """Tune what is missing of the arms of a comparison, then compare them."""
    try:
        plan = tune_all(load_arms(out, trust), out, local, observer)
    except (KeyboardInterrupt, DroptopError, OSError) as error:
        if getattr(error, "resumable", True):
            error.add_note(f"{typed('resume', out)} continues")
        raise
    begin(plan, out, tuned=True)
    return carry_on(plan, out, observer)


def carry_on(plan: Plan, out: Path, observer: Observer) -> dict[str, Any]:
    """Train what is missing in a folder that was begun, then draw the figures."""
    with resumable(out):
        return _carried_on(plan, out, observer)


def _carried_on(plan: Plan, out: Path, observer: Observer) -> dict[str, Any]:
    was_finished = finished(plan, out)
    unfit = [TUNED] if (out / TUNED).exists() and read_tuned(out) is None else []
    for name in unfit:  # nobody can make it anew: it stays as it is, and stays known as altered
        observer.note(f"{out / name} is not what was written: how arms were tuned is left out")
    result = execute(plan, out, observer)
    from droptop.figures import run_figures as figures  # matplotlib is slow to load and only needed here

    runs = [RunFolder(run, arm.noted(), name) for (run, arm), name in zip(plan.folders(out).items(), plan.arms)]
    summaries = [result] if plan.command == "run" else result["arms"].values()
    if plan.command == "compare" and plan.options.limit is None:
        with note_write_errors(was_finished, "what a step costs", observer.note):
            record_costs(plan, out, observer)
    with note_write_errors(was_finished, "figures", observer.note):
        for run, summary in zip(runs, summaries):
            for seed, why in figures.draw_run(run, summary).items():
                observer.note(
                    f"{why}; results stand, but curves over steps lack seed {seed}: delete "
                    f"{seed_folder(run.path, seed)}, and {typed('resume', out)} makes it anew"
                )
        if plan.command == "compare":
            figures.draw_comparison(runs, out, result)
        for place in {out, *plan.folders(out)}:
            files = [place / name for name in ("config.toml", "summary.json", "compare.json", "cost.json", TUNED)]
            write_manifest(place, [*files, *(place / "figures").glob("*.png")], unfit)
    return result


@contextmanager
def resumable(out: Path) -> Iterator[None]:
    """Add the command that continues to errors that leave something to continue."""
    try:
        yield
    except (KeyboardInterrupt, DroptopError, OSError) as error:
        if getattr(error, "resumable", True) and (out / "config.toml").exists():
            error.add_note(f"{typed('resume', out)} {getattr(error, 'resumed', 'continues')}")
        raise


def record_costs(plan: Plan, out: Path, observer: Observer) -> None:
    """Write cost.json, what a step of every arm costs, unless it is there; tell the observer if it cannot be had."""
    from droptop.bench.costs import costs_of

    if set(read_costs(out)) != set(plan.arms):
        try:
            write_json(out / "cost.json", costs_of(plan))
        except BrokenProcessPool:
            observer.note("what a step costs could not be measured: the process that did so died")
