"""When one seed saves its learner, how, and from where it goes on. On a GPU a checkpoint is written in the background.

The format of a checkpoint, and which ones are kept, is the business of `runs/checkpoint.py`.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from droptop.errors import BadCheckpoint, BadRequest
from droptop.learner import Learner
from droptop.runs import checkpoint
from droptop.runs.config import Config
from droptop.runs.folder import seed_folder
from droptop.training.metrics_file import MetricsFile, matches
from droptop.types import Position

MAX_COST = 0.03  # share of a process's time that checkpoints may take
BACKGROUND = ThreadPoolExecutor(4, "checkpoints")


class SeedCheckpoints:
    """Save and restore the learner of one seed; `warn` is told of checkpoints that are damaged.

    Checkpoints are due by time, so that they cost little whatever a step or a checkpoint costs.
    """

    def __init__(self, config: Config, run: Path, seed: int, warn: Callable[[str], None]) -> None:
        self.config, self.run, self.seed, self.warn = config, run, seed, warn
        self.metrics_path = seed_folder(run, seed) / "metrics.jsonl"
        self.folder = seed_folder(run, seed) / "checkpoints"
        self.background = config.options.device != "cpu"  # a CPU is busy with either training or writing
        self.writing: Future[float] | None = None  # the checkpoint being written: the seconds it takes
        self.start_clock()

    def start_clock(self, cost: float = 0.0) -> None:
        """Count from now to the next checkpoint, after one that cost so many seconds."""
        self.last, self.cost = time.monotonic(), cost

    def due(self, seeds_in_process: int) -> bool:
        """Return whether it is time for a checkpoint; the seeds of a process share what checkpoints may cost."""
        interval = max(self.config.options.checkpoint_seconds, self.cost * seeds_in_process / MAX_COST)
        return time.monotonic() - self.last >= interval and (self.writing is None or self.writing.done())

    def save(self, learner: Learner, position: Position, metrics: MetricsFile) -> None:
        """Write a checkpoint, in the background on a GPU, with the next batch and how long the metrics are by now."""
        started = time.monotonic()
        about = {
            "config": self.config.fingerprint(),
            "seed": self.seed,
            "position": list(position),
            "metrics": metrics.mark(),
        }
        name = checkpoint.step_name(learner.clock["step"])
        if not self.background:
            self.start_clock(timed(checkpoint.write, self.folder, name, learner.state_dict(), about))
            return
        write_seconds = self.wait()
        tensors = {key: value.to("cpu", copy=True) for key, value in learner.state_dict().items()}
        self.writing = BACKGROUND.submit(timed, checkpoint.write, self.folder, name, tensors, about)
        self.start_clock(max(time.monotonic() - started, write_seconds))

    def tidy(self) -> None:
        """Remove what was to be removed when a kill came between; at the end of a seed nothing else would."""
        if self.folder.is_dir():
            checkpoint.tidy(self.folder)

    def wait(self) -> float:
        """Wait for the checkpoint that is being written; return the seconds it took, or raise what went wrong."""
        if self.writing is None:
            return 0.0
        writing, self.writing = self.writing, None
        return writing.result()

    def wait_quietly(self) -> None:
        """Wait for the checkpoint that is being written, and raise nothing: another error is on its way."""
        if self.writing is not None:
            self.writing.exception()

    def restore(self, learner: Learner) -> tuple[Position, int]:
        """Load the newest whole checkpoint into a learner; return the next batch and the bytes of metrics before it.

        Raise BadRequest if the configuration has changed since. Without a checkpoint, the run starts at its beginning.
        """
        for header in checkpoint.newest_first(self.folder):
            try:
                tensors, about = checkpoint.read(header)
            except BadCheckpoint as error:
                self.warn(f"{error}; going back to what was before it")
                continue
            if about["config"] != self.config.fingerprint():
                raise BadRequest(f"{self.run / 'config.toml'} has changed since {header} was written")
            if about["seed"] != self.seed:
                self.warn(f"{header} is of seed {about['seed']}; going back to what was before it")
                continue
            if not matches(self.metrics_path, about["metrics"]):
                self.warn(f"metrics.jsonl does not go with {header}; going back to what was before it")
                continue
            learner.load_state_dict(tensors)
            return Position(*about["position"]), about["metrics"]["bytes"]
        return Position(), 0


def timed(work: Callable[..., None], *given: Any) -> float:
    """Call a function; return the seconds it took."""
    started = time.monotonic()
    work(*given)
    return time.monotonic() - started
