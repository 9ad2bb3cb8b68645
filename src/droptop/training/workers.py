"""Seeds side by side. On a CPU, one process a core, each with its own threads, working through jobs one at a time; on
a GPU, one process that has several of them in flight.

Workers die with the command that started them, however it dies; on Ctrl-C or SIGTERM they save what they have and end.
"""

import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from droptop.data.image_cache import forget_reads, sharing_reads
from droptop.errors import BadRequest, DroptopError, WorkerDied
from droptop.system.signals import deaf, interruptible
from droptop.training.concurrent_seeds import ConcurrentSeeds
from droptop.training.observer import Job, Observer, SeedProgress
from droptop.training.seed_run import Interrupted, SeedRun, seed_run

REPORT_EVERY = 0.2  # seconds between a worker's reports
GRACE = 15.0  # seconds for workers to save and end
UNGUARDED = os.EX_USAGE  # how a worker exits that would start the same runs, as it imports the file that started it


def work(pipe: Connection, threads: int) -> None:
    """A worker's life: jobs come in, reports go out, until None comes."""
    import torch

    torch.set_num_threads(threads)
    warnings.simplefilter("ignore")  # whoever started us has said it already
    stop = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: stop.set())
    parent = parent_process()
    assert parent is not None
    threading.Thread(target=lambda: (wait([parent.sentinel]), os._exit(1)), daemon=True).start()
    with suppress(BrokenPipeError, ConnectionResetError, EOFError), sharing_reads():  # nobody listens any more
        serve(pipe, stop)


def serve(pipe: Connection, stop: threading.Event) -> None:
    """Runs whatever jobs come, until None does or somebody asks to stop."""
    while (order := pipe.recv()) is not None:
        jobs, patient = order
        options = jobs[0].config.options
        prepare(options.device, options.deterministic)
        runs = [seed_run(job, Reporter(pipe, number), partial(tell, pipe, number)) for number, job in enumerate(jobs)]

        def spoiled(run: SeedRun, error: Exception, runs: list[SeedRun] = runs, jobs: Sequence[Job] = jobs) -> None:
            forget_reads()  # it may be what was in the folder
            pipe.send(("spoiled", runs.index(run), Failure.of(error, jobs[runs.index(run)])))

        concurrent = ConcurrentSeeds(runs, options.device, stop.is_set, options.parallel, spoiled if patient else None)
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


def tell(pipe: Connection, number: int, text: str) -> None:
    """Send a note about a job."""
    pipe.send(("note", number, text))


@dataclass(frozen=True)
class Failure:
    """Why jobs were not done, as it travels between processes."""

    kind: type[DroptopError]
    message: str
    traceback: str

    @classmethod
    def of(cls, error: Exception, job: Job) -> "Failure":
        trace = traceback.format_exc()
        if isinstance(error, DroptopError):
            return cls(type(error), str(error), trace)
        if isinstance(error, OSError):
            return cls(WorkerDied, f"{error.filename or job.run}: {error.strerror or error}", trace)
        what, own = f"{type(error).__name__}: {error}", job.config.options.method.partition(":")[0]
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own]
        if lines:  # in a method of the user's own: whoever wrote it wants to know where, not what we did before
            return cls(DroptopError, f"{job.name} failed: {own}, line {lines[-1]}: {what}", trace)
        return cls(DroptopError, f"{job.name} failed:\n{trace}", trace)

    @classmethod
    def of_death(cls, job: Job, exitcode: int | None) -> "Failure":
        if exitcode == UNGUARDED:
            why = (
                'runs are started under `if __name__ == "__main__":`, since seeds run in processes that import the '
                "same file"
            )
            return cls(BadRequest, why, why)
        why = f"{job.name}: its process died (exit code {exitcode})"
        return cls(WorkerDied, why, why)


@dataclass
class Reporter:
    """Sends a job's progress to whoever started us, a few times a second."""

    pipe: Connection
    number: int
    last: float = 0.0

    def __call__(self, progress: SeedProgress) -> None:
        if time.monotonic() - self.last >= REPORT_EVERY or progress.step == progress.steps:
            self.pipe.send(("progress", self.number, progress))
            self.last = time.monotonic()


def prepare(device: str, deterministic: bool) -> None:
    """Switches that belong to a process."""
    import torch

    if device == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS has no deterministic way
        torch.backends.cudnn.benchmark = not deterministic
        torch.backends.cudnn.deterministic = deterministic
        torch.use_deterministic_algorithms(deterministic)


@dataclass
class Worker:
    process: BaseProcess
    pipe: Connection
    jobs: Sequence[Job] | None = None
    spoiled: set[int] = field(default_factory=set)  # numbers of those that failed alone


@dataclass
class WorkerPool:
    observer: Observer
    waiting: list[Sequence[Job]]  # jobs that one worker takes together
    workers: list[Worker] = field(default_factory=list)
    threads: int = 1  # of each worker
    patient: bool = False  # jobs that fail by a fault of their own do not stop those that they share a worker with

    def run(self, threads: int, cores: int) -> None:
        """Runs every job, on as many processes as there are cores; all of them have ended when this returns."""
        before = os.environ.get("OMP_NUM_THREADS")
        os.environ["OMP_NUM_THREADS"] = str(threads)  # read by a worker when it loads torch
        try:
            with interruptible():
                try:
                    for _ in range(min(len(self.waiting), max(1, cores // threads))):
                        self.hire(threads)
                    self.loop()
                finally:
                    self.end()
        finally:
            if before is None:
                del os.environ["OMP_NUM_THREADS"]
            else:
                os.environ["OMP_NUM_THREADS"] = before

    def hire(self, threads: int) -> None:
        self.threads = threads
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, threads), daemon=True)
        with deaf():  # until the worker can take a Ctrl-C as a request
            process.start()
        theirs.close()
        self.workers.append(Worker(process, ours))
        self.assign(self.workers[-1])

    def assign(self, worker: Worker) -> None:
        worker.jobs, worker.spoiled = self.waiting.pop(0) if self.waiting else None, set()
        with suppress(BrokenPipeError, ConnectionResetError):  # it died; whoever listens to it will hear of that
            worker.pipe.send(None if worker.jobs is None else (worker.jobs, self.patient))

    def loop(self) -> None:
        """Until every job is done or one has failed."""
        while busy := {worker.pipe: worker for worker in self.workers if worker.jobs is not None}:
            for ready in wait(list(busy)):
                self.hear(busy[ready])  # type: ignore[index]

    def hear(self, worker: Worker) -> None:
        jobs = worker.jobs
        assert jobs is not None
        try:
            kind, number, value = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            worker.process.join(1)
            worker.jobs = None
            self.failed(worker, self.left(worker, jobs), Failure.of_death(jobs[0], worker.process.exitcode))
            return
        job = jobs[number]
        if kind == "progress":
            self.observer.progress(job, value)
        elif kind == "note":
            self.observer.note(f"{job.name}: {value}")
        elif kind == "done":
            self.observer.done(job)
        elif kind == "spoiled":
            worker.spoiled.add(number)
            self.failed_alone(job, value)
        elif kind == "free":
            self.assign(worker)
        elif kind == "interrupted":
            raise KeyboardInterrupt
        else:
            worker.jobs = None
            self.failed(worker, self.left(worker, jobs), value)

    def left(self, worker: Worker, jobs: Sequence[Job]) -> list[Job]:
        """Those of a worker's jobs about whose failure nobody has heard yet."""
        return [job for number, job in enumerate(jobs) if number not in worker.spoiled]

    def failed(self, worker: Worker, jobs: Sequence[Job], failure: Failure) -> None:
        """Somebody could not do all of these; everybody stops."""
        raise failure.kind(failure.message)

    def failed_alone(self, job: Job, failure: Failure) -> None:
        """A job failed, and its patient worker goes on with the others."""
        raise NotImplementedError

    def end(self) -> None:
        """Idle workers end by themselves; busy ones are asked to save and end, and in the last resort made to."""
        for worker in self.workers:
            if worker.jobs is not None:
                worker.process.terminate()  # SIGTERM, which it takes as a request
            with suppress(OSError):  # it may have ended already
                worker.pipe.send(None)  # for one that has just failed too, and waits for what comes next
        deadline = time.monotonic() + GRACE
        for worker in self.workers:
            while worker.process.is_alive() and time.monotonic() < deadline:
                try:
                    if worker.pipe.poll(0.05):
                        worker.pipe.recv()  # a full pipe must not keep it from ending
                    elif worker.jobs is None:
                        worker.process.join(0.05)
                except (EOFError, OSError):
                    worker.process.join(0.5)
            if worker.process.is_alive():
                worker.process.kill()
            worker.process.join()


def run_jobs(
    jobs: Sequence[Job],
    observer: Observer,
    threads: int,
    cores: Callable[[], int] = lambda: len(os.sched_getaffinity(0)),
) -> None:
    """Runs every job; raises what stopped them, after everybody has saved and ended."""
    # A GPU is shared best within one process; processes of a CPU take one job each.
    on_gpu = jobs[0].config.options.device == "cuda"
    observer.begin(len(jobs))
    WorkerPool(observer, [list(jobs)] if on_gpu else [[job] for job in jobs]).run(threads, cores())
