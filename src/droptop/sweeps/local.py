"""The local engine: every core of this machine, or its GPU, through the same pool that single runs use."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from droptop.sweeps.sweep import Driver, Pack
from droptop.training.observer import Job
from droptop.training.worker_pool import Worker, WorkerPool, by_switches
from droptop.training.workers import Failure


@dataclass
class PatientPool(WorkerPool):
    """A pool of workers that goes on where a job fails or a worker dies."""

    driver: Driver | None = None
    patient: bool = True

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
            self.hire(self.threads)


def local(packs: list[Pack], driver: Driver) -> None:
    """Run packs on this machine: on a GPU all in one process, on a CPU in a process per core."""
    options = packs[0][0].config.options  # device and threads are the same for a whole study
    options.check_machine()
    if options.device == "cuda":
        PatientPool(driver, merged(packs), driver=driver).run(options.threads, 1)
    else:
        PatientPool(driver, list(packs), driver=driver).run(options.threads, len(os.sched_getaffinity(0)))


def merged(packs: list[Pack]) -> list[Sequence[Job]]:
    """Merge the packs of one GPU, so that it is busy while the last seeds of one configuration end and the next begins.

    Packs stay apart where they differ in an option that switches the whole process.
    """
    return by_switches(job for pack in packs for job in pack)
