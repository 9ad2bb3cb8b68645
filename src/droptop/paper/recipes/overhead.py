"""Table 7 (appendix E): time and memory of ER with and without DropTop (overhead).

Every round times all arms in turn, each in its own process, in the middle of a stream (the memory is full).
Differences are paired by round, so that whatever else the machine does affects both arms. The paper's "13.62%" is 6.71
of 49.26 minutes, a share of the time *with* DropTop; of ER's own 42.55 minutes it is 15.8%. The table gives both.

Our default probe runs over the whole memory. The paper's count of (p + 1) / p forward passes per step implies a probe
of one batch, which is the option `--probe`; the table has a row for each.
"""

import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from droptop.paper import quoted
from droptop.paper.cell_results import CellResults, Series, difference, mean
from droptop.paper.claims import same_sets, stand_in_notes, stream_name, suffix, unquoted_note
from droptop.paper.measurements import Measurements
from droptop.paper.recipe import Recipe
from droptop.paper.tables import Column, Output, Percent, Table, Value
from droptop.runs.config import Config
from droptop.system.devices import first_of, is_cuda

ARMS: dict[str, dict[str, Any]] = {
    "ER": {"debias": "none"},
    "ER + DropTop, probe of a batch": {"debias": "droptop", "probe": 64},
    "ER + DropTop, probe of the whole memory": {"debias": "droptop"},
}
PLAIN, BATCH, _ = ARMS
MEANING = (
    "What is added is given in percent of ER's figure and, as the paper does, of that with DropTop. The paper's "
    "count of (p + 1) / p forward passes per step is that of a probe of one batch; the probe of the whole memory "
    "is this package's default."
)
QUOTED = (
    "*Italics* are quoted from the paper or follow from what it gives, on an RTX 2080 Ti: its 13.62% of time is "
    "6.71 of 49.26 minutes, and 15.8% of ER's 42.55. Its ablation's \"Degrad.\" divides by the variant in the "
    "same way."
)
ROUNDS, QUICK_ROUNDS = 5, 2
STEPS, QUICK_STEPS = 60, 12


def config(results: CellResults, data: str, arm: str) -> Config:
    """Return the configuration of ER on a stream in one arm."""
    return results.scope.config({"data": data, "method": "er", **ARMS[arm]})


def key(results: CellResults, data: str, arm: str, number: int) -> str:
    """Return the name of a measurement, which says all that a time depends on."""
    return f"{config(results, data, arm).fingerprint()[:10]} {data}, {arm}, {steps(results)} steps, round {number + 1}"


def rounds(results: CellResults) -> range:
    """Return the numbers of the rounds."""
    return range(QUICK_ROUNDS if results.scope.quick else ROUNDS)


def steps(results: CellResults) -> int:
    """Return how many steps are timed per round and arm."""
    return QUICK_STEPS if results.scope.quick else STEPS


def measure(results: CellResults, measurements: Measurements) -> None:
    """Time every arm in every round that was not timed before."""
    for data in results.scope.data:
        for number in rounds(results):
            for arm in ARMS:
                cost = partial(cost_in_own_process, config(results, data, arm), steps(results))
                measurements.once(key(results, data, arm, number), cost)


def cost_in_own_process(config: Config, steps: int) -> dict[str, float]:
    """Return milliseconds per step and MiB, measured in a process that does nothing else."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(cost, config, steps).result()


def cost(config: Config, steps: int) -> dict[str, float]:
    """Return milliseconds per step and MiB, measured in this process: memory of the GPU, else of the process."""
    import torch

    from droptop.bench.runner import Engine
    from droptop.bench.step_times import race
    from droptop.training.workers import prepare

    config = config.on(first_of(config.options.device))
    torch.set_num_threads(config.options.threads)
    prepare(config.options.device, deterministic=False, precision=config.options.precision)
    engine: Engine = "graphs" if is_cuda(config.options.device) and config.options.graphs else "eager"
    measured = [(row, peak_mib()) for row in race(config, engine, [1, 1], steps)]
    row, peak = measured[-1]  # the second time, when everything is loaded and compiled
    return {"ms": row["ms"], "mib": peak if row["memory_mib"] is None else row["memory_mib"]}


def peak_mib() -> float:
    """Return the most memory that this process took since the last call, or since it began if only that is known."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    with suppress(OSError):  # Linux counts this process alone, and starts again at clear_refs
        [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
        peak = int(line.split()[1]) / 2**10
        Path("/proc/self/clear_refs").write_text("5")
    return peak


# -- The table --------------------------------------------------------------------------------------------------------


def added(plain: float | None, debiased: float | None) -> tuple[Percent, Percent]:
    """Return what is added, in percent of the plain figure and, as in the paper, of the debiased one."""
    if not plain or not debiased:
        return Percent(None), Percent(None)
    return Percent(100 * (debiased - plain) / plain), Percent(100 * (debiased - plain) / debiased)


def series(results: CellResults, data: str, arm: str, unit: str) -> Series:
    """Return the costs of an arm by round, as far as they were measured."""
    keys = {number: key(results, data, arm, number) for number in rounds(results)}
    costs = results.measurements
    return {number: costs[name][unit] for number, name in keys.items() if name in costs}


def table(results: CellResults, data: str) -> Table:
    """Return memory and time of every arm, and what they add to ER's."""
    rows: list[list[Value]] = []
    used, of_paper = [(data, "original")], [quoted.IMAGENET_9]  # of which only the stream counts
    quotes = same_sets(used, of_paper)
    for place, (unit, title) in enumerate({"mib": "memory", "ms": "time"}.items()):
        quoted_costs = quoted.OVERHEAD["none"][place], quoted.OVERHEAD["droptop"][place]
        paper_unit = ("GB", "minutes")[place]
        plain = series(results, data, PLAIN, unit)
        for arm in ARMS:
            costs = series(results, data, arm, unit)
            shares: tuple[Value, Value] = (None, None) if arm == PLAIN else added(mean(plain).mean, mean(costs).mean)
            quotation: list[Value] = ["", None, None]
            if quotes and arm == PLAIN:
                quotation = [f"{quoted_costs[0]} {paper_unit}", None, None]
            elif quotes and arm == BATCH:
                quotation = [f"{quoted_costs[1]} {paper_unit}", *added(*quoted_costs)]
            rows.append(
                [
                    f"{title} ({'MiB' if unit == 'mib' else 'ms per step'})" if arm == PLAIN else "",
                    arm,
                    *quotation,
                    mean(costs),
                    *shares,
                    len(costs),
                    None if arm == PLAIN else difference(plain, costs),
                ]
            )
    columns = [
        Column("cost", "label"),
        Column("learner", "label"),
        Column("paper", "quoted"),
        Column("added, of ER: paper", "quoted"),
        Column("added, of ER + DropTop: paper", "quoted"),
        Column("here"),
        Column("added, of ER: here"),
        Column("added, of ER + DropTop: here"),
        Column("rounds"),
        Column("difference"),
    ]
    options = results.scope.config({"data": data, "method": "er", "debias": "none"}).options
    memory = "the GPU's" if is_cuda(options.device) else "the most that the process takes, libraries and data included"
    notes = [
        f"Mean ± standard error over rounds, on {options.device}; memory is {memory}. {MEANING}",
        *([QUOTED, *stand_in_notes([data])] if quotes else [unquoted_note(used, of_paper)]),
    ]
    return Table(f"What DropTop costs, ER on {stream_name(data)}", columns, rows, notes, suffix(results, data))


def show(results: CellResults) -> list[Output]:
    """Return one table per stream."""
    return [table(results, data) for data in results.scope.data]


RECIPES = (
    Recipe(
        "overhead",
        "Table 7",
        "time and memory of ER with and without DropTop on this machine",
        show,
        measure=measure,
        data=("split-imagenet9",),
        takes="15 times 60 steps",
    ),
)
