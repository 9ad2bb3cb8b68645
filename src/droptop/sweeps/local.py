"""The local engine: every core of this machine, or its GPU, through the same pool that single runs use."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from droptop.sweeps.sweep import Driver, Pack
from droptop.training.observer import Job
from droptop.training.workers import Failure, Worker, WorkerPool


@dataclass
class PatientPool(WorkerPool):
    """Goes on where a job fails or a worker dies."""

    driver: Driver | None = None
    patient: bool = True

    def failed_alone(self, job: Job, failure: Failure) -> None:
        assert self.driver is not None
        self.waiting += self.driver.retry([job], failure)

    def failed(self, worker: Worker, jobs: Sequence[Job], failure: Failure) -> None:
        assert self.driver is not None
        self.waiting += self.driver.retry(jobs, failure)
        if worker.process.is_alive():
            self.assign(worker)
            return
        self.workers.remove(worker)
        if self.waiting:
            self.hire(self.threads)


def local(packs: list[Pack], driver: Driver) -> None:
    options = packs[0][0].config.options  # device and threads are the same in all of a study
    options.check_machine()
    if options.device == "cuda":
        PatientPool(driver, companies(packs), driver=driver).run(options.threads, 1)
    else:
        PatientPool(driver, list(packs), driver=driver).run(options.threads, len(os.sched_getaffinity(0)))


def companies(packs: list[Pack]) -> list[Sequence[Job]]:
    """Packs of a GPU's only process put together, so that it is busy while the last seeds of one configuration end and
    the first of the next begin; apart where their options switch the whole process."""
    found: dict[tuple[object, ...], list[Job]] = {}
    for pack in packs:
        options = pack[0].config.options
        found.setdefault((options.precision, options.deterministic, options.parallel), []).extend(pack)
    return list(found.values())
