"""The Ray engine: the same cells on a cluster that people already have (`pip install 'droptop[ray]'`, Ray core alone).

Ray does the scheduling, and starts a cell anew, from its last checkpoint, where a node or a worker dies. Through its
object store go a configuration and a word of what became of it; results and checkpoints are on the study's folder,
which every node must see under the same path. Images are decoded once a node, into its own cache.
"""

import logging
import os
import signal
import threading
import time
from collections import deque
from typing import Any

from droptop.data.image_cache import sharing_reads
from droptop.errors import BadRequest, WorkerDied
from droptop.sweeps.sweep import Driver, Engine, Pack
from droptop.system.signals import interruptible
from droptop.training.concurrent_seeds import ConcurrentSeeds
from droptop.training.seed_run import Interrupted, seed_run
from droptop.training.workers import Failure, prepare

AHEAD = 4  # packs submitted for every one that can run, so that no node waits and the driver stays small
LOST = 10  # times that a pack is started anew because its node or worker died
GRACE = 9.0  # seconds for cells to save and end


def run_pack(pack: Pack) -> tuple[Failure | str | None, list[str]]:
    """What a worker elsewhere does: None once all of it is done, else why not; and whatever is worth a note."""
    import torch

    options = pack[0].config.options
    torch.set_num_threads(options.threads)
    prepare(options.device, options.deterministic)
    stop, notes = threading.Event(), list[str]()
    before = {signum: signal.signal(signum, lambda *_: stop.set()) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        runs = [seed_run(job, lambda progress: None, notes.append) for job in pack]
        with sharing_reads():
            for _ in ConcurrentSeeds(runs, options.device, stop.is_set, options.parallel).finished():
                pass
        return None, notes
    except Interrupted:
        return "interrupted", notes
    except Exception as error:
        return Failure.of(error, pack[0]), notes
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def on_ray(address: str | None, cpus: float, gpus: float) -> Engine:
    """An engine on the cluster at `address`, or on one that is started here and now."""
    try:
        import ray
    except ImportError:
        raise BadRequest("--engine ray needs Ray: pip install 'droptop[ray]'") from None

    def engine(packs: list[Pack], driver: Driver) -> None:
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        started = not ray.is_initialized()
        if started:
            try:
                ray.init(address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise BadRequest(f"--address {address}: {str(error).splitlines()[0]}") from None
        try:
            with interruptible():
                _work(ray, packs, driver, cpus, gpus)
        finally:
            if started:
                ray.shutdown()

    return engine


def _work(ray: Any, packs: list[Pack], driver: Driver, cpus: float, gpus: float) -> None:
    task = ray.remote(run_pack).options(num_cpus=cpus, num_gpus=gpus, max_retries=LOST)
    waiting, flying = deque(packs), dict[Any, Pack]()
    try:
        while waiting or flying:
            slots = max(1, int(ray.cluster_resources().get("CPU", 1) / max(cpus, 0.01)))
            while waiting and len(flying) < AHEAD * slots:
                pack = waiting.popleft()
                flying[task.remote(pack)] = pack
            for reference in ray.wait(list(flying), num_returns=len(flying), timeout=0.2)[0]:
                pack = flying.pop(reference)
                try:
                    outcome, notes = ray.get(reference)
                    for text in notes:
                        driver.note(f"{pack[0].run.name}: {text}")
                except (ray.exceptions.RayError, OSError) as error:
                    outcome = Failure(WorkerDied, str(error), str(error))
                if outcome is None:
                    for job in pack:
                        driver.done(job)
                elif outcome == "interrupted":
                    waiting.append(pack)
                else:
                    waiting.extend(driver.retry(pack, outcome))
    except KeyboardInterrupt:
        for reference in flying:
            ray.cancel(reference, force=False)  # a request: the cell saves and ends
        deadline = time.monotonic() + GRACE
        left = list(flying)
        while left and time.monotonic() < deadline:
            left = ray.wait(left, num_returns=len(left), timeout=0.2)[1]
        raise
