"""The worker's side of training seeds in processes: jobs come in through a pipe, reports go out.

A worker dies with the command that started it, however that dies; on Ctrl-C or SIGTERM it saves what it has and ends.
The other side is `worker_pool.py`.
"""

import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from droptop.data.image_cache import forget_reads, sharing_reads
from droptop.errors import DiedAtOnce, DroptopError, WorkerDied, no_memory
from droptop.escapes import visible
from droptop.nets import Precision, allow_tf32
from droptop.runs.folder import seed_folder
from droptop.system.devices import bind, is_cuda, lacks_operation, staying
from droptop.training.concurrent_seeds import ConcurrentSeeds
from droptop.training.observer import Job, SeedProgress
from droptop.training.seed_run import Interrupted, SeedRun, seed_run

REPORT_EVERY = 0.2  # seconds between a worker's reports


def work(pipe: Connection, threads: int) -> None:
    """Run jobs from a pipe until None comes; the target of a worker's process."""
    import torch

    torch.set_num_threads(threads)
    warnings.simplefilter("ignore")  # the parent has shown them already
    stop = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: stop.set())
    parent = parent_process()
    assert parent is not None
    threading.Thread(target=lambda: (wait([parent.sentinel]), os._exit(1)), daemon=True).start()
    with suppress(BrokenPipeError, ConnectionResetError, EOFError), sharing_reads():  # the parent is gone
        serve(pipe, stop)


class Pipe(Protocol):
    """Bring orders to a worker, and its messages to whoever gave them."""

    def recv(self) -> Any:
        """Return the next jobs, and whether to go on after failures; None at the end."""

    def send(self, message: Any) -> None:
        """Send what happened, the number of the job, and what there is to say."""


@contextmanager
def computing_on(threads: int) -> Iterator[None]:
    """Let torch compute on so many threads in this process, as a worker does; results depend on their number.

    What is changed here for a worker's sake is as it was before when this ends: threads and the default GPU.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with staying():
            yield
    finally:
        torch.set_num_threads(before)


def serve(pipe: Pipe, stop: threading.Event) -> None:
    """Run the jobs that come through a pipe, and report, until None comes or `stop` is set."""
    while (order := pipe.recv()) is not None:
        jobs, go_on_after_failures = order
        options = jobs[0].config.options
        prepare(options.device, options.deterministic, options.precision)
        runs = [
            seed_run(job, Reporter(pipe, number), partial(send_note, pipe, number)) for number, job in enumerate(jobs)
        ]

        def failed_alone(
            run: SeedRun, error: Exception, runs: list[SeedRun] = runs, jobs: Sequence[Job] = jobs
        ) -> None:
            forget_reads()  # the images that are kept may be the reason
            pipe.send(("failed alone", runs.index(run), Failure.of(error, jobs[runs.index(run)])))

        alone = failed_alone if go_on_after_failures else None
        concurrent = ConcurrentSeeds(runs, options.device, stop.is_set, options.parallel, alone)
        try:
            for run in concurrent.finished():
                pipe.send(("done", runs.index(run), None))
            pipe.send(("free", 0, None))
        except Interrupted:
            pipe.send(("interrupted", 0, None))
            return
        except Exception as error:
            culprit = jobs[0] if concurrent.culprit is None else jobs[runs.index(concurrent.culprit)]
            pipe.send(("failed", 0, Failure.of(error, culprit)))


def send_note(pipe: Pipe, number: int, text: str) -> None:
    """Send a note about a job."""
    pipe.send(("note", number, text))


def lines(*texts: str) -> str:
    """Return texts as the lines of an error."""
    return "\n".join(map(visible, texts))


@dataclass(frozen=True)
class Failure:
    """Say why jobs were not done, in a form that travels between processes."""

    kind: type[DroptopError]
    message: str  # as the error says it
    traceback: str

    @property
    def error(self) -> DroptopError:
        """Return the error, to raise it in another process."""
        return self.kind(*self.message.split("\n"))

    @classmethod
    def of(cls, error: Exception, job: Job) -> "Failure":
        """Return the failure of a job that raised an error, with the line of the user's own file that raised it."""
        trace = traceback.format_exc()
        if isinstance(error, DroptopError):
            return cls(type(error), str(error), trace)
        if isinstance(error, OSError):
            return cls(WorkerDied, lines(f"{error.filename or job.run}: {error.strerror or error}"), trace)
        if text := no_memory(error) or lacks_operation(error):
            return cls(WorkerDied, lines(f"{job.name}: {text}"), trace)
        own = {name.partition(":")[0] for names in job.config.options.user_files().values() for name in names}
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in own]
        if frames:  # who wrote the file wants to know this line, not what droptop did before
            where = f"{frames[-1].filename}, line {frames[-1].lineno}"
            return cls(DroptopError, lines(f"{job.name} failed: {where}: {type(error).__name__}: {error}"), trace)
        return cls(DroptopError, lines(f"{job.name} failed:", *trace.split("\n")), trace)

    @classmethod
    def of_death(cls, job: Job, exitcode: int | None, step: int | None) -> "Failure":
        """Return the failure of a job whose process died after a step; None where it had not come to the first."""
        killed = "; it was killed, as happens where memory runs out" if exitcode == -signal.SIGKILL else ""
        how = f"signal {-exitcode}" if exitcode is not None and exitcode < 0 else f"exit code {exitcode}"
        when = " before its first step" if step is None else " in its first step" if step == 0 else ""
        why = f"{job.name}: its process died{when} ({how}){killed}"
        saved = any((seed_folder(job.run, job.seed) / "checkpoints").glob("*.json"))
        return cls(WorkerDied if saved else DiedAtOnce, lines(why), why)


@dataclass
class Reporter:
    """Send a job's progress to the parent, a few times per second."""

    pipe: Pipe
    number: int
    last: float = 0.0

    def __call__(self, progress: SeedProgress) -> None:
        """Send the progress, unless the last report is too recent; the first and the last step are always sent."""
        if time.monotonic() - self.last >= REPORT_EVERY or progress.step in (1, progress.steps):
            self.pipe.send(("progress", self.number, progress))
            self.last = time.monotonic()


def prepare(device: str, deterministic: bool, precision: Precision) -> None:
    """Make a GPU the process's own, and set torch's switches for it, which hold for the whole process."""
    import torch

    bind(device)
    allow_tf32(device, precision)
    if is_cuda(device):
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS is not deterministic
        torch.backends.cudnn.benchmark = not deterministic
        torch.backends.cudnn.deterministic = deterministic
        torch.use_deterministic_algorithms(deterministic)
