"""Tell trackers about a seed, all of it from its metrics.jsonl. The names of the numbers:

    loss                           at every step
    kappa/CLASS                    at step 0, and where it changes
    dropped/share, dropped/chance  percent of the dropped cells on the shortcut, where that is known
    accuracy/TEST                  percent over the classes seen, at evaluations: A_i after task i
    accuracy/TEST/task-J           percent on the classes of task J, after every task
    A_avg/TEST, F_last/TEST, ...   the figures of result.json, at the last step

The pictures of a seed come at its end, for trackers that take them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from droptop.results.metrics import accuracy
from droptop.runs.config import Config
from droptop.runs.folder import RunFolder, read_metrics, seed_folder
from droptop.trackers import Tracker, find, names
from droptop.types import Tasks


class Logbook:
    """Hold the trackers of one seed. One that fails is left out with a note, and the run goes on."""

    def __init__(
        self,
        config: Config,
        run: Path,
        seed: int,
        classes: Sequence[str],
        tasks: Tasks,
        warn: Callable[[str], None],
        name: str,
    ) -> None:
        self.config, self.run, self.seed, self.tasks, self.warn = config, run, seed, tasks, warn
        per_class = config.droptop is not None and config.droptop.intensity.per == "class"
        self.groups = classes if per_class else ("all",)  # names of the intensities
        self.trackers: dict[str, Tracker] = {}
        is_arm = (run.absolute().parent / "config.toml").is_file()  # its parent is the comparison
        group = (run.absolute().parent if is_arm else run.absolute()).name
        for kind in names(config.options.log):
            with self.guarded(kind):
                self.trackers[kind] = find(kind)(seed_folder(run, seed), group, name)

    @contextmanager
    def guarded(self, name: str) -> Iterator[None]:
        """Drop a tracker that raises inside, with a warning."""
        try:
            yield
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            self.warn(f"--log {name} failed: {reason}; the run goes on without it")
            if (tracker := self.trackers.pop(name, None)) is not None:
                with suppress(Exception):
                    tracker.close()

    def tell(self, method: str, *values: Any) -> None:
        """Call a method of every tracker."""
        for name, tracker in list(self.trackers.items()):
            with self.guarded(name):
                getattr(tracker, method)(*values)

    def begin(self) -> None:
        """Tell the options, and the lines that were written before an interruption."""
        if not self.trackers:
            return
        self.tell("hyperparameters", self.config.noted() | {"seed": self.seed})
        droptop = self.config.droptop
        if droptop is not None and droptop.drop == "adaptive":
            start = droptop.start
            self.tell("scalars", 0, {f"kappa/{group}": start for group in self.groups})
        for line in read_metrics(self.run, self.seed):
            self.line(line)

    def line(self, line: dict[str, Any]) -> None:
        """Tell the numbers of one line of metrics.jsonl."""
        if self.trackers:
            self.tell("scalars", line["step"], scalars_of(line, self.groups, self.tasks))

    def end(self, lines: list[dict[str, Any]], result: dict[str, Any]) -> None:
        """Tell the seed's figures, as numbers and as pictures."""
        figures = {
            f"{figure}/{test}": value
            for test, figures in result["tests"].items()
            for figure, value in figures.items()
            if isinstance(value, float) and math.isfinite(value)
        }
        self.tell("scalars", lines[-1]["step"], figures)
        if any(type(tracker).figure is not Tracker.figure for tracker in self.trackers.values()):
            from droptop.figures.run_figures import seed_pictures  # matplotlib is slow to load

            try:
                for name, picture in seed_pictures(RunFolder(self.run, self.config.noted()), self.seed, result, lines):
                    self.tell("figure", name, picture)
            except Exception as error:
                self.warn(f"--log: no pictures could be drawn: {error}")

    def close(self) -> None:
        """Close every tracker."""
        self.tell("close")
        self.trackers = {}


def scalars_of(line: dict[str, Any], groups: Sequence[str], tasks: Tasks) -> dict[str, float]:
    """Return the numbers of a line of metrics.jsonl by name, without those that are not finite."""
    values = {"loss": line["loss"]}
    values |= {f"kappa/{groups[int(group)]}": kappa for group, kappa in line.get("kappa", {}).items()}
    values |= {f"dropped/{name}": 100 * share for name, share in line.get("dropped", {}).items()}
    for test, evaluation in line.get("eval", {}).items():
        values[f"accuracy/{test}"] = accuracy(evaluation)
        for task, classes in enumerate(tasks[: line["task"] + 1] if line.get("task_end") else ()):
            values[f"accuracy/{test}/task-{task + 1}"] = accuracy(evaluation, classes)
    return {name: value for name, value in values.items() if math.isfinite(value)}
