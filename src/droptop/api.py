"""The commands `run`, `compare` and `resume` as functions; the command line calls the same code.

    if __name__ == "__main__":      # seeds run in processes of their own, which import this file
        comparison = droptop.compare("fashion-sticker", "er", "droptop", seeds=3, out="runs/first")
        print(comparison["effects"]["removed"]["A_avg"])

Without the guard, every process of a seed would start the comparison again; it is refused.
"""

import sys
from multiprocessing import current_process
from pathlib import Path
from typing import Any

from droptop import trackers
from droptop.errors import typed
from droptop.report.seed_progress import Plain
from droptop.runs.config import Config, configure
from droptop.runs.folder import Command, RunFolder, seed_folder
from droptop.runs.requests import arms, begin, finished, load, with_seeds
from droptop.training.execute import execute, note_write_errors
from droptop.training.observer import Observer
from droptop.training.workers import UNGUARDED


def run(
    data: str = "fashion-sticker", method: str = "er", debias: str = "droptop", *, out: str | Path, **options: Any
) -> dict[str, Any]:
    """Train one arm over all seeds.

    Args:
        data: The name of a stream, such as `split-cifar10` or `folder:PATH`.
        method: The name of a learner, or `FILE.py:CLASS`.
        debias: What to debias with, by name, or `none`.
        out: The folder of the run; it is new or empty.
        options: Any option of the command line, such as `seeds=3, lr=0.05`.

    Returns:
        What stands in `summary.json`: accuracies and forgetting per test set, a value per seed.

    Raises:
        BadRequest: The request cannot be met; nothing was written.
    """
    return start("run", configure(data, method, debias, **followed(options)), Path(out), Plain())


def compare(
    data: str = "fashion-sticker", method: str = "er", debias: str = "droptop", *, out: str | Path, **options: Any
) -> dict[str, Any]:
    """Train a method with and without debiasing on the same seeds.

    Args:
        data: The name of a stream.
        method: The name of a learner, or `FILE.py:CLASS`.
        debias: What one arm is debiased with, by name; the other arm is not debiased.
        out: The folder of the comparison; each arm has a run folder in it.
        options: Any option of the command line, such as `seeds=3, gamma=5`.

    Returns:
        What stands in `compare.json`: both arms, and per test set what debiasing changes.

    Raises:
        BadRequest: The request cannot be met; nothing was written.
    """
    return start("compare", configure(data, method, debias, **followed(options)), Path(out), Plain())


def resume(out: str | Path, seeds: int | None = None) -> dict[str, Any]:
    """Continue a run or a comparison from where it stopped; on a CPU it ends with the same bytes as without a stop.

    Args:
        out: The folder that `run` or `compare` was given.
        seeds: How many seeds it is to have; None for as many as it was begun with.

    Returns:
        What `run` or `compare` would have returned.

    Raises:
        BadRequest: The folder holds neither a run nor a comparison, or one that has begun more than `seeds` seeds.
    """
    command, config = load(Path(out))
    return carry_on(command, with_seeds(command, config, Path(out), seeds), Path(out), Plain())


def followed(options: dict[str, Any]) -> dict[str, Any]:
    """Return options with a tracker class in `log` replaced by the name that the processes of seeds import it by."""
    log = options.get("log")
    return options | {"log": trackers.name_of(log)} if isinstance(log, type) else options


def start(command: Command, config: Config, out: Path, observer: Observer) -> dict[str, Any]:
    """Make the folder of a run or comparison and train it; refuse a folder that holds something else."""
    if getattr(current_process(), "_inheriting", False):  # a seed's process is importing the file that started it
        sys.exit(UNGUARDED)  # the process that started it says why
    config = config.with_effective_kappa_0()
    begin(command, config, out)
    return carry_on(command, config, out, observer)


def carry_on(command: Command, config: Config, out: Path, observer: Observer) -> dict[str, Any]:
    """Train what is missing in a folder that was begun, then draw the figures."""
    was_finished = finished(command, config, out)
    result = execute(command, config, out, observer)
    from droptop.figures import run_figures as figures  # matplotlib is slow to load and only needed here

    runs = [RunFolder(folder, arm.noted()) for folder, arm in arms(command, config, out).items()]
    summaries = [result] if command == "run" else result["arms"].values()
    with note_write_errors(was_finished, "figures", observer.note):
        for run, summary in zip(runs, summaries):
            for seed, why in figures.draw_run(run, summary).items():
                observer.note(
                    f"{why}; results stand, but curves over steps lack seed {seed}: delete "
                    f"{seed_folder(run.path, seed)}, and {typed('resume', out)} makes it anew"
                )
        if command == "compare":
            figures.draw_comparison(runs, out, result)
    return result
