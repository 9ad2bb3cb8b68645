"""The Slurm engine, by submitit (`pip install 'droptop[slurm]'`): a job a pack, in arrays; checkpoints on the study's
folder, so that a job that is preempted and comes back goes on where it was."""

from pathlib import Path
from typing import Any

from droptop.engine.pool import Failure
from droptop.errors import BadRequest, WorkerDied
from droptop.study.on_ray import run_pack
from droptop.study.sweep import Driver, Engine, Pack


def on_slurm(study: Path, minutes: int, cpus: float, gpus: float, cluster: str | None = None) -> Engine:
    """An engine that submits to Slurm; `cluster="local"` runs the same on this machine, to try it."""
    try:
        import submitit
    except ImportError:
        raise BadRequest("--engine submitit needs submitit: pip install 'droptop[slurm]'") from None

    def engine(packs: list[Pack], driver: Driver) -> None:
        executor = submitit.AutoExecutor(study / "slurm", cluster=cluster)
        executor.update_parameters(timeout_min=minutes, cpus_per_task=max(1, round(cpus)),
                                   gpus_per_node=max(0, round(gpus)), name="droptop")
        while packs:
            jobs: list[Any] = executor.map_array(run_pack, packs)
            again: list[Pack] = []
            try:
                for job, pack in zip(jobs, packs):
                    try:
                        outcome = job.result()
                    except Exception as error:  # the job was lost: what it did is in its checkpoints
                        outcome = Failure(WorkerDied, str(error), str(error))
                    if outcome is None:
                        for done in pack:
                            driver.done(done)
                    else:
                        again += [pack] if outcome == "interrupted" else driver.failed(pack, outcome)
            except KeyboardInterrupt:
                for job in jobs:
                    job.cancel()
                raise
            packs = again

    return engine
