"""Measure what passes from Enter to the first step, on a CPU: seconds, and seconds of processor time.

    python benchmarks/start.py run compare sweep --times 5 --out start.json

A command begins as a person would begin it and trains a small net on built-in images. Its first step is over when the
first checkpoint is there; then it is interrupted. Processor time is that of the command and its workers up to then, and
`torch` what importing torch alone takes of it, in every process. `cold` has no compiled Python files and no decoded
images, `warm` has both.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from statistics import mean, stdev

from droptop.runs.environment import environment

OPTIONS = {"data": "fashion-sticker", "width": 4, "limit": 64, "checkpoint_seconds": 0.0, "maps": 0, "seeds": 2}
TICK = os.sysconf("SC_CLK_TCK")


def command_of(name: str, place: Path) -> list[str]:
    """Return the command line of a command, with its study where it takes one."""
    if name == "sweep":
        study = place / "study.toml"
        grid = OPTIONS | {"debias": ["none", "droptop"]}
        study.write_text("".join(f"{option} = {json.dumps(value)}\n" for option, value in grid.items()))
        return ["sweep", str(study), "--out", str(place / "out")]
    flags = [part for option, value in OPTIONS.items() for part in (f"--{option.replace('_', '-')}", str(value))]
    return [name, *flags, "--out", str(place / "out")]


def processor_seconds(process: int) -> float:
    """Return the processor time that a process and its children have taken so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return (int(fields[11]) + int(fields[12])) / TICK + sum(map(processor_seconds, map(int, children)))


def first_step(name: str, caches: Path) -> tuple[float, float]:
    """Return the seconds and the processor seconds from the start of a command to its first checkpoint."""
    with tempfile.TemporaryDirectory() as place:
        line = [sys.executable, "-m", "droptop", *command_of(name, Path(place))]
        known = {"PYTHONPYCACHEPREFIX": str(caches / "pyc"), "DROPTOP_CACHE": str(caches / "images")}
        started = time.perf_counter()
        with subprocess.Popen(
            line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | known
        ) as process:
            while not any(Path(place).glob("out/**/checkpoints/step-*.json")):
                if process.poll() is not None:
                    raise SystemExit(f"{' '.join(line)} ended with {process.returncode} before its first step")
                time.sleep(0.002)
            seconds, processor = time.perf_counter() - started, processor_seconds(process.pid)
            process.send_signal(signal.SIGINT)
        return seconds, processor


def torch_seconds(caches: Path) -> float:
    """Return the processor time of a process that imports torch and ends."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    known = {"PYTHONPYCACHEPREFIX": str(caches / "pyc")}
    subprocess.run([sys.executable, "-c", "import torch"], check=True, env=os.environ | known)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure the commands that are named, cold and warm in turn; print a line for each, and add them to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="+", choices=("run", "compare", "sweep"))
    parser.add_argument("--times", type=int, default=5, help="times that each is measured")
    parser.add_argument("--out", type=Path, help="a file of rows, to which these are added")
    asked = parser.parse_args()
    rows = json.loads(asked.out.read_text()) if asked.out and asked.out.exists() else []
    noted = environment("cpu", 1)
    about = {name: noted[name] for name in ("device_name", "cores", "python", "versions", "commit")}
    for name in asked.commands:
        taken: dict[str, list[tuple[float, float, float]]] = {"cold": [], "warm": []}
        for _ in range(asked.times):
            with tempfile.TemporaryDirectory() as caches:
                for times in taken.values():  # the first one leaves its caches to the second
                    times.append((*first_step(name, Path(caches)), torch_seconds(Path(caches))))
        for state, times in taken.items():
            row = {"command": name, "state": state, "times": asked.times, "date": str(date.today())} | about
            for what, values in zip(("seconds", "processor", "torch"), zip(*times)):
                row[what] = round(mean(values), 2)
                row[f"{what}_sd"] = round(stdev(values), 2) if len(values) > 1 else None
            rows.append(row)
            print(json.dumps(row), flush=True)
            if asked.out:
                asked.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
