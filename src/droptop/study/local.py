"""The local engine: every core of this machine, or its GPU, through the same pool that single runs use."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from droptop.engine.pool import Failure, Job, Pool, Worker
from droptop.study.sweep import Driver, Pack


@dataclass
class Patient(Pool):
    """Goes on where a job fails or a worker dies."""

    driver: Driver | None = None

    def failed(self, worker: Worker, jobs: Sequence[Job], failure: Failure) -> None:
        assert self.driver is not None
        self.waiting += self.driver.failed(jobs, failure)
        if worker.process.is_alive():
            self.assign(worker)
            return
        self.workers.remove(worker)
        if self.waiting:
            self.hire(self.threads)


def local(packs: list[Pack], driver: Driver) -> None:
    options = packs[0][0].config.options  # device and threads are the same in all of a study
    options.check_machine()
    cores = 1 if options.device == "cuda" else len(os.sched_getaffinity(0))
    Patient(driver, list(packs), driver=driver).run(options.threads, cores)
