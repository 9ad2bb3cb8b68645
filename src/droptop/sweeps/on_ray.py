"""The Ray engine: the same cells on a Ray cluster (`pip install 'droptop[ray]'`, which is Ray core alone).

Ray schedules the cells and, where a node or a worker dies, starts a cell again from its last checkpoint. Only a
configuration and its outcome pass through Ray's object store. Results and checkpoints are in the study's folder, which
every node must see under the same path. Images are decoded once per node, into its own cache.
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
from droptop.system.devices import kind_of
from droptop.system.signals import interruptible
from droptop.training.concurrent_seeds import ConcurrentSeeds
from droptop.training.seed_run import Interrupted, seed_run
from droptop.training.worker_pool import on
from droptop.training.workers import Failure, prepare

AHEAD = 4  # packs submitted per pack that can run, so that no node waits and the driver's queue stays small
LOST = 10  # times that a pack is started again because its node or worker died
GRACE = 9.0  # seconds in which cells save and end


def run_pack(pack: Pack) -> tuple[Failure | str | None, list[str]]:
    """Run a pack in a worker on another machine; return its outcome and what is worth a note.

    Which GPU it has there is for the cluster to say, so that of the device only its kind counts.
    The outcome is None where the whole pack is done, "interrupted", or the failure.
    """
    import torch

    pack = on(kind_of(pack[0].config.options.device), pack)
    options = pack[0].config.options
    torch.set_num_threads(options.threads)
    prepare(options.device, options.deterministic, options.precision)
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
    """Return an engine on the cluster at `address`, or on one that it starts on this machine; refuse a missing Ray."""
    try:
        import ray
    except ImportError:
        raise BadRequest("--engine ray needs Ray: pip install 'droptop[ray]'") from None

    def engine(packs: list[Pack], driver: Driver) -> None:
        """Run packs, and tell the driver what becomes of each."""
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
    """Submit packs as there is room for them, and tell the driver what becomes of each."""
    task = ray.remote(run_pack).options(num_cpus=cpus, num_gpus=gpus, max_retries=LOST)
    waiting, submitted = deque(packs or driver.more()), dict[Any, Pack]()
    try:
        while waiting or submitted:
            slots = max(1, int(ray.cluster_resources().get("CPU", 1) / max(cpus, 0.01)))
            while len(waiting) + len(submitted) < slots and (more := driver.more()):
                waiting.extend(more)
            while waiting and len(submitted) < AHEAD * slots:
                pack = waiting.popleft()
                submitted[task.remote(pack)] = pack
            for reference in ray.wait(list(submitted), num_returns=len(submitted), timeout=0.2)[0]:
                pack = submitted.pop(reference)
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
            if not (waiting or submitted):
                waiting.extend(driver.more())
    except KeyboardInterrupt:
        for reference in submitted:
            ray.cancel(reference, force=False)  # a request, on which the cell saves and ends
        deadline = time.monotonic() + GRACE
        left = list(submitted)
        while left and time.monotonic() < deadline:
            left = ray.wait(left, num_returns=len(left), timeout=0.2)[1]
        raise
