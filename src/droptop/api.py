"""The commands `run`, `compare` and `resume` as functions; the command line calls the same code.

    if __name__ == "__main__":      # seeds run in processes of their own, which import this file
        comparison = droptop.compare("fashion-sticker", "er", ["droptop", "robust"], seeds=3, out="runs/first")
        print(comparison["effects"]["robust"]["removed"]["A_avg"])

Without the guard, every process of a seed would start the comparison again; it is refused.
"""

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import current_process
from pathlib import Path
from typing import Any, Unpack

from droptop import trackers
from droptop.errors import typed
from droptop.report.seed_progress import Plain
from droptop.report.shown import Comparison, RunResult, shown
from droptop.runs.folder import RunFolder, read_costs, seed_folder
from droptop.runs.plan import Plan, plan_of
from droptop.runs.reference import usual_debias
from droptop.runs.requests import begin, check, finished, load, with_seeds
from droptop.system.files import write_json
from droptop.training.execute import execute, note_write_errors
from droptop.training.observer import Observer
from droptop.training.workers import UNGUARDED
from droptop.typed_options import Options


def run(
    data: str = "fashion-sticker",
    method: str = "er",
    debias: str = "droptop",
    *,
    out: str | Path,
    **options: Unpack[Options],
) -> RunResult:
    """Train one arm over all seeds.

    Args:
        data: The name of a stream, such as `split-cifar10` or `folder:PATH`.
        method: The name of a learner, or `FILE.py:CLASS`.
        debias: What to debias with, by name, or `none`.
        out: The folder of the run; it is new or empty.
        options: Any option of the command line, such as `seeds=3, lr=0.05`.

    Returns:
        What stands in `summary.json`, a dict that shows itself as a table: accuracies and forgetting per test set, a
        value per seed.

    Raises:
        BadRequest: The request cannot be met; nothing was written.
    """
    return RunResult(start(plan_of("run", data, method, debias, followed(options)), Path(out), False, Plain()))


def compare(
    data: str = "fashion-sticker",
    method: str = "er",
    debias: str | Sequence[str] | None = None,
    *,
    arms: Mapping[str, Mapping[str, Any]] | None = None,
    against: str | None = None,
    equal_cost: bool = False,
    out: str | Path,
    **options: Unpack[Options],
) -> Comparison:
    """Train a method without debiasing and with it, in one arm or several, on the same seeds.

    Args:
        data: The name of a stream.
        method: The name of a learner, or a Python file that defines one.
        debias: What to debias with, by name or file, by default DropTop; a list has an arm for each. The plain arm
            comes by itself.
        arms: Options of arms by the arms' names, in place of a list: `{"slow": {"lr": 0.01}}`. An arm without an option
            `debias` is debiased as `debias` says, or not at all.
        against: The reference, which all other arms are compared with: a debiasing, a method, an option with its value
            such as `"width=20"`, or the name of one of the arms; by default the plain arm.
        equal_cost: Whether to add, for every arm that costs more than the reference, a reference that costs the same,
            by more replay.
        out: The folder of the comparison; each arm has a run folder in it.
        options: Any option of the command line, such as `seeds=3, gamma=5`; it holds for every arm that has it.

    Returns:
        What stands in `compare.json`, a dict that shows itself as a table: the arms, and what each changes beside the
        plain one, by test set.

    Raises:
        BadRequest: The request cannot be met; nothing was written.
    """
    chosen = debias or usual_debias(arms, against)
    named = chosen if isinstance(chosen, str) else ",".join(chosen)
    plan = plan_of("compare", data, method, named, followed(options), arms, against=against)
    return Comparison(start(plan, Path(out), equal_cost, Plain()))


def resume(out: str | Path, seeds: int | None = None) -> RunResult | Comparison:
    """Continue a run or a comparison from where it stopped; on a CPU it ends with the same bytes as without a stop.

    Args:
        out: The folder that `run` or `compare` was given.
        seeds: How many seeds it is to have; None for as many as it was begun with.

    Returns:
        What `run` or `compare` would have returned.

    Raises:
        BadRequest: The folder holds neither a run nor a comparison, or one that has begun more than `seeds` seeds.
    """
    return shown(carry_on(with_seeds(load(Path(out)), Path(out), seeds), Path(out), Plain()))


def followed(options: Options) -> dict[str, Any]:
    """Return options with a tracker class in `log` replaced by the name that the processes of seeds import it by."""
    log = options.get("log")
    return dict(options) | ({"log": trackers.name_of(log)} if isinstance(log, type) else {})


def start(plan: Plan, out: Path, equal_cost: bool, observer: Observer) -> dict[str, Any]:
    """Make the folder of a run or comparison and train it; refuse a folder that holds something else.

    With `equal_cost`, a comparison gets plain arms that cost what its other arms cost.
    """
    if getattr(current_process(), "_inheriting", False):  # a seed's process is importing the file that started it
        sys.exit(UNGUARDED)  # the process that started it says why
    plan = plan.with_effective_kappa_0()
    if equal_cost:
        from droptop.bench.costs import with_equal_cost

        check(plan, out)
        plan = with_equal_cost(plan)
    begin(plan, out)
    return carry_on(plan, out, observer)


def carry_on(plan: Plan, out: Path, observer: Observer) -> dict[str, Any]:
    """Train what is missing in a folder that was begun, then draw the figures."""
    was_finished = finished(plan, out)
    result = execute(plan, out, observer)
    from droptop.figures import run_figures as figures  # matplotlib is slow to load and only needed here

    runs = [RunFolder(run, arm.noted(), name) for (run, arm), name in zip(plan.folders(out).items(), plan.arms)]
    summaries = [result] if plan.command == "run" else result["arms"].values()
    with note_write_errors(was_finished, "figures", observer.note):
        for run, summary in zip(runs, summaries):
            for seed, why in figures.draw_run(run, summary).items():
                observer.note(
                    f"{why}; results stand, but curves over steps lack seed {seed}: delete "
                    f"{seed_folder(run.path, seed)}, and {typed('resume', out)} makes it anew"
                )
        if plan.command == "compare":
            figures.draw_comparison(runs, out, result)
    if plan.command == "compare" and plan.options.limit is None:
        with note_write_errors(was_finished, "what a step costs", observer.note):
            record_costs(plan, out, observer)
    return result


def record_costs(plan: Plan, out: Path, observer: Observer) -> None:
    """Write cost.json, what a step of every arm costs, unless it is there; tell the observer if it cannot be had."""
    from droptop.bench.costs import costs_of

    if set(read_costs(out)) != set(plan.arms):
        try:
            write_json(out / "cost.json", costs_of(plan))
        except BrokenProcessPool:
            observer.note("what a step costs could not be measured: the process that did so died")
