"""The local engine: every core of this machine, or its GPUs, through the same pool that single runs use."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

from droptop.data.image_cache import sharing_reads
from droptop.sweeps.sweep import Driver, Pack
from droptop.system import devices
from droptop.system.processes import cores
from droptop.system.signals import interruptible
from droptop.training.observer import Job
from droptop.training.worker_pool import PipeHere, Worker, WorkerPool, by_switches, dealt
from droptop.training.workers import Failure, computing_on, serve


@dataclass
class PatientPool(WorkerPool):
    """A pool of workers that goes on where a job fails or a worker dies."""

    driver: Driver | None = None
    patient: bool = True

    def assign(self, worker: Worker) -> None:
        """Give a worker the next jobs; where none are waiting, what the driver wants to run next."""
        assert self.driver is not None
        if not self.waiting:
            self.waiting += self.driver.more()
        super().assign(worker)

    def failed_alone(self, job: Job, failure: Failure) -> None:
        """Queue what the driver wants to try again of one failed job."""
        assert self.driver is not None
        self.waiting += self.driver.retry([job], failure)

    def failed(self, worker: Worker, jobs: Sequence[Job], failure: Failure) -> None:
        """Queue what the driver wants to try again of a worker's jobs; replace the worker where it died."""
        assert self.driver is not None
        self.waiting += self.driver.retry(jobs, failure)
        if worker.process.is_alive():
            self.assign(worker)
            return
        self.workers.remove(worker)
        if self.waiting:
            self.hire(self.threads, worker.device)


def local(packs: list[Pack], driver: Driver) -> None:
    """Run packs on this machine: on a GPU all in one process, on several in one on each, on a CPU in one per core."""
    packs = packs or driver.more()
    if not packs:
        return
    options = packs[0][0].config.options  # device and threads are the same for a whole study
    options.check_machine()
    if any(job.config.options.has_objects for pack in packs for job in pack):
        here(packs, driver, options.threads)
        return
    on_cpu = options.device == "cpu"
    worker_devices = ["cpu"] * max(1, cores() // options.threads) if on_cpu else devices.each(options.device)
    waiting = list[Sequence[Job]](packs) if on_cpu else dealt(merged(packs), len(worker_devices))
    while len(waiting) < len(worker_devices) and (more := driver.more()):
        waiting += more
    PatientPool(driver, waiting, driver=driver).run(options.threads, worker_devices)


class PatientPipe(PipeHere):
    """Stand in for the pipe to a worker, and go on where a job fails."""

    def __init__(self, driver: Driver, packs: list[Sequence[Job]]) -> None:
        super().__init__(driver, packs)
        self.driver = driver

    def recv(self) -> tuple[Sequence[Job], bool] | None:
        """Return the next jobs; None where the driver has no more of them."""
        if not self.packs:
            self.packs += self.driver.more()
        order = super().recv()
        return None if order is None else (order[0], True)

    def send(self, message: tuple[str, int, Any]) -> None:
        """Act on a message; queue what the driver wants to try again of jobs that failed."""
        kind, number, value = message
        if kind == "failed":
            self.packs += self.driver.retry(self.jobs, value)
        elif kind == "failed alone":
            self.packs += self.driver.retry([self.jobs[number]], value)
        elif kind == "interrupted":
            raise KeyboardInterrupt
        else:
            super().send(message)


def here(packs: list[Pack], driver: Driver, threads: int) -> None:
    """Run packs in this process, which alone has the objects that they need."""
    with computing_on(threads), sharing_reads(), interruptible():
        serve(PatientPipe(driver, list(packs)), Event())


def merged(packs: list[Pack]) -> list[Sequence[Job]]:
    """Merge packs for GPUs, so that each is busy while the last seeds of one configuration end and the next begins.

    Packs stay apart where they differ in an option that switches the whole process.
    """
    return by_switches(job for pack in packs for job in pack)
