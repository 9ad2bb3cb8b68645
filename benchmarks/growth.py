"""Measure how time and memory grow: with the memory's size, classes, pixels, a batch, steps, seeds and cells.

    python benchmarks/growth.py benchmarks/cpu/growth before=OTHER/src after=src

Takes versions of droptop by their source folders, all of which measure a case before the next one begins. Writes
growth.csv, a row per case, size and version, and growth-exponents.csv, a row per case. Times are CPU seconds of one
thread, the least of `LAPS`, so that other work on the machine hardly counts; memory is the most that the process held
beyond what it began with, of a command all that it held. An exponent is the slope of the logarithms over the `FITTED`
largest sizes, where what is constant weighs least: 1 is linear growth. growth_cases.py has the cases.
"""

import csv
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from itertools import chain
from pathlib import Path
from statistics import linear_regression
from typing import Any

LAPS, FITTED, LEAST_MS = 3, 3, 20  # a lap takes so many milliseconds or one call
CELLS = (10, 100, 1000, 10000)
Row = dict[str, Any]


def status_mib(name: str) -> float:
    """Return what the kernel says of this process's memory: VmRSS now, VmHWM at most since `forget_most`."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


def forget_most() -> None:
    """Let the kernel take the most memory anew, from now on."""
    Path("/proc/self/clear_refs").write_text("5")


def measured(what: str, over: str) -> list[Row]:
    """Measure a case in this process; return a row per size."""
    import torch

    import growth_cases

    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as place:
        (case,) = (case for case in growth_cases.cases(Path(place)) if (case.what, case.over) == (what, over))
        began = status_mib("VmRSS")
        for size in case.sizes:
            forget_most()
            work = case.make(size)
            first = cpu_ms(work, 1)
            calls = max(1, math.ceil(LEAST_MS / max(first, 0.01)))
            least = min(cpu_ms(work, calls) for _ in range(LAPS if first < 1000 else 1))
            rows.append({"size": size, "ms": least, "mib": status_mib("VmHWM") - began})
            del work
    return rows


def cpu_ms(work: Any, calls: int) -> float:
    """Return the CPU milliseconds of a call."""
    began = time.process_time()
    for _ in range(calls):
        work()
    return 1000 * (time.process_time() - began) / calls


def of_command(arguments: list[str]) -> Row:
    """Run a command of droptop in this process; return what it took, imports and all."""
    from droptop.cli import main as droptop

    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        droptop(arguments)
    return {"ms": 1000 * time.process_time(), "mib": status_mib("VmHWM")}


def in_version(source: str, *arguments: str) -> Any:
    """Return what this script prints as JSON in a process of its own, with a version of droptop."""
    paths = os.pathsep.join((str(Path(source).resolve()), str(Path(__file__).parent)))
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, *arguments]
    return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout)


def case_rows(versions: dict[str, str], what: str, over: str) -> list[Row]:
    """Measure a case with every version."""
    return [
        {"what": what, "over": over, "version": version} | row
        for version, source in versions.items()
        for row in in_version(source, "--case", what, over)
    ]


def command_rows(versions: dict[str, str], what: str, over: str, folders: dict[int, Path]) -> list[Row]:
    """Measure a command on studies by their sizes, with every version."""
    return [
        {"what": what, "over": over, "version": version, "size": size}
        | in_version(source, "--command", *what.split(), str(folder))
        for size, folder in folders.items()
        for version, source in versions.items()
    ]


def study_rows(versions: dict[str, str], place: Path) -> Iterator[list[Row]]:
    """Measure the commands that read studies: of done cells, of ever more seeds, and of cells that all failed."""
    import growth_cases

    os.fsync = lambda number: None  # what is written here need not outlast the machine
    seeds = {n // 2: growth_cases.write_study(place / f"seeds-{n}", n, seeds=n // 2) for n in CELLS}
    yield command_rows(versions, "results", "seeds", seeds)
    yield command_rows(versions, "report", "seeds", seeds)
    failed = {n: growth_cases.write_study(place / f"failed-{n}", n, seeds=n // 2, fails=True) for n in CELLS}
    yield command_rows(versions, "status", "failed cells", failed)
    done = {n: growth_cases.write_study(place / f"done-{n}", n) for n in CELLS}
    for command in ("status", "results", "report", "sweep --out"):
        yield command_rows(versions, command, "cells", done)


def exponents(rows: list[Row]) -> list[Row]:
    """Return a row per case: from which size to which, time and memory at the largest, and how they grow."""
    table = []
    for what, over in dict.fromkeys((row["what"], row["over"]) for row in rows):
        of_case = [row for row in rows if (row["what"], row["over"]) == (what, over)]
        sizes = sorted({row["size"] for row in of_case})
        line: Row = {"what": what, "over": over, "from": sizes[0], "to": sizes[-1]}
        for version in dict.fromkeys(row["version"] for row in of_case):
            mine = sorted((row for row in of_case if row["version"] == version), key=lambda row: row["size"])
            for unit in ("ms", "mib"):
                line[f"{version} {unit}"] = mine[-1][unit]
                line[f"{version} {unit} exponent"] = exponent([(row["size"], row[unit]) for row in mine[-FITTED:]])
        table.append(line)
    return table


def exponent(points: list[tuple[int, float]]) -> float | None:
    """Return the slope of the logarithms of sizes and values; None of a single size."""
    if len(points) == 1:
        return None
    sizes, values = zip(*((math.log(size), math.log(max(value, 1e-3))) for size, value in points))
    return linear_regression(sizes, values).slope


def write(path: Path, rows: list[Row]) -> None:
    """Write rows as CSV, numbers to four digits."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: f"{v:.4g}" if isinstance(v, float) else v for name, v in row.items()})


def main(table: str, *named: str) -> None:
    """Measure every case with every version; write both tables, anew after each case."""
    import growth_cases

    versions, rows = dict(name.split("=", 1) for name in named), list[Row]()
    with tempfile.TemporaryDirectory() as place:
        cases = growth_cases.cases(Path(place))
        of_cases = (case_rows(versions, case.what, case.over) for case in cases)
        for more in chain(of_cases, study_rows(versions, Path(place))):
            rows += more
            write(Path(f"{table}.csv"), rows)
            write(Path(f"{table}-exponents.csv"), exponents(rows))


if __name__ == "__main__":
    if sys.argv[1] == "--case":
        print(json.dumps(measured(*sys.argv[2:])))
    elif sys.argv[1] == "--command":
        print(json.dumps(of_command(sys.argv[2:])))
    else:
        main(*sys.argv[1:])
