"""The parent's side of training seeds in processes: on a CPU a process per core, each with its own threads, that takes
one job at a time; on a GPU one process that trains several seeds at once, and on several GPUs one on each.

The other side is `workers.py`.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Event
from typing import Any

from droptop.data.image_cache import sharing_reads
from droptop.system import devices
from droptop.system.processes import cores, without_main
from droptop.system.signals import deaf, interruptible
from droptop.training.observer import Job, Observer
from droptop.training.workers import Failure, computing_on, serve, work

GRACE = 15.0  # seconds for workers to save and end


@dataclass
class Worker:
    """A process that works, and the jobs it has."""

    process: BaseProcess
    pipe: Connection
    jobs: Sequence[Job] | None = None
    steps: dict[int, int] = field(default_factory=dict)  # how far each job is, by its number
    failed_alone: set[int] = field(default_factory=set)  # numbers of jobs that failed while the others went on
    device: str = "cpu"


@dataclass
class WorkerPool:
    """Run jobs in worker processes, and tell an observer how they go. The first failure stops all of them.

    A subclass may be `patient`: it goes on after failures, and overrides `failed` and `failed_alone`.
    """

    observer: Observer
    waiting: list[Sequence[Job]]  # each entry goes to one worker
    workers: list[Worker] = field(default_factory=list)
    threads: int = 1  # per worker
    patient: bool = False  # whether a job that fails leaves the others of its worker running

    def run(self, threads: int, worker_devices: Sequence[str]) -> None:
        """Run every job, in a worker per device that is named; all have ended when this returns."""
        before = os.environ.get("OMP_NUM_THREADS")
        os.environ["OMP_NUM_THREADS"] = str(threads)  # read by a worker when it loads torch
        try:
            with interruptible():
                try:
                    for device in worker_devices[: len(self.waiting)]:
                        self.hire(threads, device)
                    self.loop()
                finally:
                    self.end()
        finally:
            if before is None:
                del os.environ["OMP_NUM_THREADS"]
            else:
                os.environ["OMP_NUM_THREADS"] = before

    def hire(self, threads: int, device: str) -> None:
        """Start a worker for a device, and give it jobs."""
        self.threads = threads
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, threads), daemon=True)
        with deaf(), without_main():  # until the worker has its own signal handlers
            process.start()
        theirs.close()
        self.workers.append(Worker(process, ours, device=device))
        self.assign(self.workers[-1])

    def assign(self, worker: Worker) -> None:
        """Give a worker the next jobs, or tell it to end where there are none."""
        worker.jobs, worker.failed_alone, worker.steps = self.waiting.pop(0) if self.waiting else None, set(), {}
        with suppress(BrokenPipeError, ConnectionResetError):  # it died, which `hear` will notice
            worker.pipe.send(None if worker.jobs is None else (on(worker.device, worker.jobs), self.patient))

    def loop(self) -> None:
        """Hear the workers until every job is done; raise once one has failed."""
        while busy := {worker.pipe: worker for worker in self.workers if worker.jobs is not None}:
            for ready in wait(list(busy)):
                self.hear(busy[ready])  # type: ignore[index]

    def hear(self, worker: Worker) -> None:
        """Take one message of a worker and act on it; raise KeyboardInterrupt if it was interrupted."""
        jobs = worker.jobs
        assert jobs is not None
        try:
            kind, number, value = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            worker.process.join(1)
            worker.jobs = None
            death = Failure.of_death(jobs[0], worker.process.exitcode, worker.steps.get(0))
            self.failed(worker, self.unreported(worker, jobs), death)
            return
        if kind in ("progress", "note", "done"):
            if kind == "progress":
                worker.steps[number] = value.step
            tell(self.observer, jobs[number], kind, value)
        elif kind == "failed alone":
            worker.failed_alone.add(number)
            self.failed_alone(jobs[number], value)
        elif kind == "free":
            self.assign(worker)
        elif kind == "interrupted":
            raise KeyboardInterrupt
        else:
            worker.jobs = None
            self.failed(worker, self.unreported(worker, jobs), value)

    def unreported(self, worker: Worker, jobs: Sequence[Job]) -> list[Job]:
        """Return the jobs of a worker that have not failed alone before."""
        return [job for number, job in enumerate(jobs) if number not in worker.failed_alone]

    def failed(self, worker: Worker, jobs: Sequence[Job], failure: Failure) -> None:
        """Act on the failure of a worker with all of these jobs; raise it, which stops all workers."""
        raise failure.error

    def failed_alone(self, job: Job, failure: Failure) -> None:
        """Act on the failure of one job while its worker goes on with the others; only a patient pool hears of it."""
        raise NotImplementedError

    def end(self) -> None:
        """End all workers: idle ones end by themselves, busy ones are asked to save and end, and killed after GRACE."""
        for worker in self.workers:
            if worker.jobs is not None:
                worker.process.terminate()  # SIGTERM, on which it saves and ends
            with suppress(OSError):  # it may have ended already
                worker.pipe.send(None)  # also for one that has just failed and waits for its next jobs
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


def tell(observer: Observer, job: Job, kind: str, value: Any) -> None:
    """Tell an observer what a worker says of a job that has not failed."""
    if kind == "progress":
        observer.progress(job, value)
    elif kind == "note":
        observer.note(f"{job.name}: {value}")
    else:
        observer.done(job)


class PipeHere:
    """Stand in for the pipe to a worker, where its jobs run in this process: what it sends is heard at once."""

    def __init__(self, observer: Observer, packs: list[Sequence[Job]]) -> None:
        self.observer, self.packs, self.jobs = observer, packs, packs[0]

    def recv(self) -> tuple[Sequence[Job], bool] | None:
        """Return the next jobs; None where there are none."""
        if not self.packs:
            return None
        self.jobs = self.packs.pop(0)
        return self.jobs, False

    def send(self, message: tuple[str, int, Any]) -> None:
        """Act on a message; raise what made jobs fail."""
        kind, number, value = message
        if kind == "failed":
            raise value.error
        if kind != "free":
            tell(self.observer, self.jobs[number], kind, value)


def run_here(jobs: Sequence[Job], observer: Observer, threads: int) -> None:
    """Run jobs in this process, which alone has the objects that they need: on a CPU one after another."""
    with computing_on(threads), sharing_reads(), interruptible():
        serve(PipeHere(observer, by_switches(jobs)), Event())


def run_jobs(jobs: Sequence[Job], observer: Observer, threads: int, cores: Callable[[], int] = cores) -> None:
    """Run every job; raise what stopped them, after all workers have saved and ended."""
    observer.begin(len(jobs))
    if any(job.config.options.has_objects for job in jobs):
        run_here(jobs, observer, threads)
        return
    device = jobs[0].config.options.device
    if device == "cpu":  # every process takes one job at a time
        WorkerPool(observer, [[job] for job in jobs]).run(threads, [device] * max(1, cores() // threads))
    else:  # seeds share a GPU best within one process
        gpus = devices.each(device)
        WorkerPool(observer, dealt(by_switches(jobs), len(gpus))).run(threads, gpus)


def on(device: str, jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs of a worker, each on the worker's device."""
    return [replace(job, config=job.config.on(device)) for job in jobs]


def dealt(packs: Iterable[Sequence[Job]], workers: int) -> list[Sequence[Job]]:
    """Deal each pack to so many workers, there and back, so that arms or configurations in turn go to all of them."""
    order = [*range(workers), *reversed(range(workers))]
    hands = [
        [job for place, job in enumerate(pack) if order[place % len(order)] == worker]
        for pack in packs
        for worker in range(workers)
    ]
    return [hand for hand in hands if hand]


def by_switches(jobs: Iterable[Job]) -> list[Sequence[Job]]:
    """Divide jobs where they differ in an option that switches the whole process, as `workers.prepare` does."""
    divided: dict[tuple[object, ...], list[Job]] = {}
    for job in jobs:
        options = job.config.options
        divided.setdefault((options.precision, options.deterministic, options.parallel), []).append(job)
    return list(divided.values())
