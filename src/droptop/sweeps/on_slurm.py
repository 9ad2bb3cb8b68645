"""The Slurm engine, by submitit (`pip install 'droptop[slurm]'`): a job per pack, in arrays.

A job that is lost or runs out of time is submitted once more and goes on from its last checkpoint, which is in the
study's folder.
"""

from pathlib import Path
from typing import Any

from droptop.errors import BadRequest, WorkerDied
from droptop.sweeps.on_ray import run_pack
from droptop.sweeps.sweep import Driver, Engine, Pack
from droptop.system.signals import interruptible
from droptop.training.workers import Failure

ARRAY = 500  # jobs at once; many clusters allow a thousand


def on_slurm(study: Path, minutes: int, cpus: float, gpus: float, cluster: str | None = None) -> Engine:
    """Return an engine that submits to Slurm; `cluster="local"` runs the same on this machine, to try it."""
    try:
        import submitit
    except ImportError:
        raise BadRequest("--engine submitit needs submitit: pip install 'droptop[slurm]'") from None

    def engine(packs: list[Pack], driver: Driver) -> None:
        """Run packs, and tell the driver what becomes of each."""
        executor = submitit.AutoExecutor(study / "slurm", cluster=cluster)
        executor.update_parameters(
            timeout_min=minutes, cpus_per_task=max(1, round(cpus)), gpus_per_node=max(0, round(gpus)), name="droptop"
        )
        with interruptible():
            while packs:
                packs = batch(packs[:ARRAY], executor, driver) + packs[ARRAY:]

    return engine


def batch(packs: list[Pack], executor: Any, driver: Driver) -> list[Pack]:
    """Run an array of jobs, a pack each; return the packs that have to be run again."""
    jobs: list[Any] = executor.map_array(run_pack, packs)
    again: list[Pack] = []
    try:
        for job, pack in zip(jobs, packs):
            try:
                outcome, notes = job.result()
            except Exception as error:  # the job was lost: what it did is in its checkpoints
                outcome, notes = Failure(WorkerDied, str(error), str(error)), []
            for text in notes:
                driver.note(f"{pack[0].run.name}: {text}")
            if outcome is None:
                for cell in pack:
                    driver.done(cell)
            else:
                again += [pack] if outcome == "interrupted" else driver.retry(pack, outcome)
    except KeyboardInterrupt:
        for job in jobs:
            job.cancel()
        raise
    return again
