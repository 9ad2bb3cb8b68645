"""The main jobs as functions; the command line calls the same ones.

if __name__ == "__main__":      # seeds run in processes of their own, which import this file
    comparison = droptop.compare("fashion-sticker", "er", "droptop", seeds=3, out="runs/first")
    print(comparison["effects"]["removed"]["A_avg"])
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
from droptop.training.execute import execute, forgiven
from droptop.training.observer import Observer
from droptop.training.workers import UNGUARDED


def run(
    data: str = "fashion-sticker", method: str = "er", debias: str = "droptop", *, out: str | Path, **options: Any
) -> dict[str, Any]:
    """Trains one arm over all seeds; gives its `summary.json`."""
    return start("run", configure(data, method, debias, **followed(options)), Path(out), Plain())


def compare(
    data: str = "fashion-sticker", method: str = "er", debias: str = "droptop", *, out: str | Path, **options: Any
) -> dict[str, Any]:
    """Trains a method with and without debiasing on the same seeds; gives `compare.json`."""
    return start("compare", configure(data, method, debias, **followed(options)), Path(out), Plain())


def resume(out: str | Path, seeds: int | None = None) -> dict[str, Any]:
    """Continues either from where it stopped, with more seeds if asked; on a CPU, to the same bytes as in one go."""
    command, config = load(Path(out))
    return carry_on(command, with_seeds(command, config, Path(out), seeds), Path(out), Plain())


def followed(options: dict[str, Any]) -> dict[str, Any]:
    """Options whose `log` may be a tracker of one's own, by the name that the seeds' processes import it by."""
    log = options.get("log")
    return options | {"log": trackers.name_of(log)} if isinstance(log, type) else options


def start(command: Command, config: Config, out: Path, observer: Observer) -> dict[str, Any]:
    if getattr(current_process(), "_inheriting", False):  # a seed's process, which imports the file that started it
        sys.exit(UNGUARDED)  # whoever started it says why
    config = config.with_effective_kappa_0()
    begin(command, config, out)
    return carry_on(command, config, out, observer)


def carry_on(command: Command, config: Config, out: Path, observer: Observer) -> dict[str, Any]:
    """Runs what is missing, then draws the figures."""
    was_finished = finished(command, config, out)
    result = execute(command, config, out, observer)
    from droptop.figures import run_figures as figures  # matplotlib is slow to load and only needed here

    runs = [RunFolder(folder, arm.noted()) for folder, arm in arms(command, config, out).items()]
    summaries = [result] if command == "run" else result["arms"].values()
    with forgiven(was_finished, "figures", observer.note):
        for run, summary in zip(runs, summaries):
            for seed, why in figures.draw_run(run, summary).items():
                observer.note(
                    f"{why}; results stand, but curves over steps lack seed {seed}: delete "
                    f"{seed_folder(run.path, seed)}, and {typed('resume', out)} makes it anew"
                )
        if command == "compare":
            figures.draw_comparison(runs, out, result)
    return result
