"""Measure what a sweep costs besides its cells: 10,000 cells that do nothing, on this machine and on Ray.

    python benchmarks/overhead.py 10000 local ray

Prints milliseconds per cell, and the memory of the driver at the start and at the end.
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from droptop.sweeps.local import local
from droptop.sweeps.sweep import Driver, Engine, Pack, sweep
from droptop.system.files import write_json
from droptop.system.locks import folder_lock
from droptop.training.observer import Job, Observer
from droptop.training.seed_run import SeedRun


class Nothing(SeedRun):
    """Stand for a cell that is done at once."""

    def work(self) -> Iterator[None]:
        """Write a result and end."""
        with folder_lock(self.folder):
            write_json(self.folder / "result.json", {"classes": [], "tasks": [], "tests": {"clean": {"A_avg": 0.0}}})
        yield


def memory() -> int:
    """Return the MiB of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 2**20


def with_empty_cells(engine: Engine) -> Engine:
    """Return an engine whose cells do nothing."""

    def run(packs: list[Pack], driver: Driver) -> None:
        engine([[Job(job.config, job.run, job.seed, Nothing) for job in pack] for pack in packs], driver)

    return run


if __name__ == "__main__":
    cells, engines = int(sys.argv[1]), sys.argv[2:]
    for name in engines:
        with tempfile.TemporaryDirectory() as place:
            study = Path(place) / "study.toml"
            rates = [0.1 + n / 1000 for n in range(100)]
            study.write_text(f"data = 'fashion'\ndebias = 'none'\nlr = {rates}\nseeds = {cells // 100}\nwidth = 4\n")
            if name == "ray":
                from droptop.sweeps.on_ray import on_ray

                engine = on_ray(None, 1, 0)
            else:
                engine = local
            before, started = memory(), time.perf_counter()
            counts = sweep(study, Path(place) / "out", with_empty_cells(engine), Observer())
            seconds = time.perf_counter() - started
            row = {
                "engine": name,
                "cells": counts["done"],
                "ms_a_cell": round(1000 * seconds / cells, 2),
                "driver_mib_before": before,
                "driver_mib_after": memory(),
            }
            print(json.dumps(row), flush=True)
