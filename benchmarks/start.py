"""Measure what passes from Enter to the first step, or to the answer of a command that looks: on a CPU, in seconds.

    python benchmarks/start.py run compare sweep parts status --times 5 --before ../main/src --out start.json

A command begins as a person would begin it. One that trains takes a small net and built-in images; its first step is
over when the first checkpoint is there, and then it is interrupted. One that looks at a finished comparison, or at
nothing, runs to its end. `processor` is processor time, that of the command and its workers; `torch` is what importing
torch takes in one process, and `beyond` the rest. `cold` has no compiled Python files and no decoded images,
`warm` has both. `parts` is the processor time of what a start consists of, part by part, in one process that is warm.

With --before, the same is measured with the droptop of another folder of sources, in turns.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from droptop.runs.environment import environment

OPTIONS = {"data": "fashion-sticker", "width": 4, "limit": 64, "checkpoint_seconds": 0.0, "maps": 0, "seeds": 2}
TRAINING = ("run", "compare", "sweep")
LOOKING = {
    "version": "--version",
    "help": "--help",
    "run-help": "run --help",
    "data-list": "data list",
    "status": "status OUT",
    "results": "results OUT",
    "report": "report OUT",
    "verify": "verify OUT",
}
TICK = os.sysconf("SC_CLK_TCK")
SOURCES = Path(__file__).resolve().parent.parent / "src"
PARTS = """
import json, sys, time
from pathlib import Path
took, begun = {}, time.process_time()
def part(name):
    global begun
    now = time.process_time()
    took[name], begun = now - begun, now
part("Python starts")
import torch
part("torch is imported")
import droptop.cli.run, droptop.training.workers, scipy.special
part("droptop is imported")
from droptop.cli.run_flags import parse
asked = parse("run", sys.argv[1:])
part("the request is read")
from droptop.runs.build import build_learner, build_stream
(config,) = asked.plan.arms.values()
stream = build_stream(config, 0)
part("the stream is decoded and painted")
build_learner(config, stream, 0)
part("the learner is built")
from droptop.training.seed_run import Interrupted, SeedRun
asked.out.mkdir()
try:
    SeedRun(config, asked.out, 0, lambda progress: None, stop=lambda: True)()
except Interrupted:
    part("the first steps and their checkpoint")
print(json.dumps(took))
"""


def words_of(name: str, place: Path) -> list[str]:
    """Return the command line of a command that trains, with its study where it takes one."""
    if name == "sweep":
        study = place / "study.toml"
        grid = OPTIONS | {"debias": ["none", "droptop"]}
        study.write_text("".join(f"{option} = {json.dumps(value)}\n" for option, value in grid.items()))
        return ["sweep", str(study), "--out", str(place / "out")]
    flags = [part for option, value in OPTIONS.items() for part in (f"--{option.replace('_', '-')}", str(value))]
    return [name, *flags, "--out", str(place / "out")]


def surroundings(sources: Path, caches: Path) -> dict[str, str]:
    """Return an environment with the droptop of some sources, one thread per process, and caches of its own."""
    known = {"PYTHONPATH": str(sources), "OMP_NUM_THREADS": "1", "DROPTOP_TRUSTED": str(caches / "trusted.json")}
    known |= {"PYTHONPYCACHEPREFIX": str(caches / "pyc"), "DROPTOP_CACHE": str(caches / "images")}
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | known


def processor_seconds(process: int) -> float:
    """Return the processor time that a process and its children have taken so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return (int(fields[11]) + int(fields[12])) / TICK + sum(map(processor_seconds, map(int, children)))


def first_step(name: str, sources: Path, caches: Path) -> tuple[float, float]:
    """Return the seconds and the processor seconds from the start of a command to its first checkpoint."""
    with tempfile.TemporaryDirectory() as place:
        line = [sys.executable, "-m", "droptop", *words_of(name, Path(place))]
        started = time.perf_counter()
        with subprocess.Popen(
            line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=surroundings(sources, caches)
        ) as process:
            while not any(Path(place).glob("out/**/checkpoints/step-*.json")):
                if process.poll() is not None:
                    raise SystemExit(f"{' '.join(line)} ended with {process.returncode} before its first step")
                time.sleep(0.002)
            seconds, processor = time.perf_counter() - started, processor_seconds(process.pid)
            process.terminate()  # not by Ctrl-C, which a shell lets its background jobs ignore
        return seconds, processor


def whole(words: list[str], sources: Path, caches: Path) -> tuple[float, float]:
    """Return the seconds and the processor seconds that Python takes for some words, to its end."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, env=surroundings(sources, caches))
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def part_seconds(sources: Path, caches: Path) -> dict[str, float]:
    """Return the processor time of the parts of a start."""
    with tempfile.TemporaryDirectory() as place:
        flags = words_of("run", Path(place))[1:]
        done = subprocess.run(
            [sys.executable, "-c", PARTS, *flags], check=True, capture_output=True, env=surroundings(sources, caches)
        )
    parts: dict[str, float] = json.loads(done.stdout)
    return parts


def measured(name: str, sources: Path, finished: Path, caches: Path) -> dict[str, float]:
    """Return what one start takes with some caches, which it fills: the first one is cold, the next one warm."""
    if name == "parts":
        return part_seconds(sources, caches)
    if name not in TRAINING:
        words = LOOKING[name].replace("OUT", str(finished)).split()
        return dict(zip(("seconds", "processor"), whole(["-m", "droptop", *words], sources, caches)))
    seconds, processor = first_step(name, sources, caches)
    torch = whole(["-c", "import torch"], sources, caches / "of torch")[1]
    return {"seconds": seconds, "processor": processor, "torch": torch, "beyond": processor - torch}


def commit_of(sources: Path) -> str:
    """Return the commit of some sources; "" where they are no checkout."""
    done = subprocess.run(["git", "-C", str(sources), "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip()


def rows_of(name: str, tree: str, commit: str, runs: dict[str, list[dict[str, float]]]) -> list[dict[str, Any]]:
    """Return a row per state or part, with the mean and the standard deviation of what was measured."""
    rows = []
    if name == "parts":
        runs = {part: [{"processor": run[part]} for run in runs["warm"]] for part in runs["warm"][0]}
    for state, measurements in runs.items():
        command = name if name in (*TRAINING, "parts") else LOOKING[name].removesuffix(" OUT")
        row: dict[str, Any] = {"command": command, "state": state, "tree": tree, "times": len(measurements)}
        for what in measurements[0]:
            values = [each[what] for each in measurements]
            row |= {what: round(mean(values), 3), f"{what}_sd": round(stdev(values), 3) if len(values) > 1 else None}
        rows.append(row | {"commit": commit})
    return rows


def main() -> None:
    """Measure what is named, the trees in turns; print a row for each, and add them to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="+", choices=(*TRAINING, "parts", *LOOKING))
    parser.add_argument("--times", type=int, default=5, help="times that each is measured")
    parser.add_argument("--cold", type=int, help="times that a cold start is measured; by default as many")
    parser.add_argument("--before", type=Path, help="a folder of sources to compare with: src of another checkout")
    parser.add_argument("--out", type=Path, help="a file of rows, to which these are added")
    asked = parser.parse_args()
    trees = ({"before": asked.before.resolve()} if asked.before else {}) | {"now": SOURCES}
    written = json.loads(asked.out.read_text()) if asked.out and asked.out.exists() else {"starts": []}
    written |= {"environment": environment("cpu", 1), "date": str(date.today())}
    with tempfile.TemporaryDirectory() as place:
        finished = Path(place) / "out"
        if not {*asked.commands} <= {*TRAINING, "parts"}:
            whole(["-m", "droptop", *words_of("compare", Path(place))], SOURCES, Path(place))
        for name in asked.commands:
            runs: dict[str, dict[str, list[Any]]] = {tree: {"cold": [], "warm": []} for tree in trees}
            colds = asked.times if asked.cold is None else asked.cold
            for time_ in range(asked.times):
                for tree, sources in trees.items():
                    caches = Path(place) / f"{name}-{tree}-{min(time_, colds - 1)}"
                    if not caches.exists():
                        runs[tree]["cold"].append(measured(name, sources, finished, caches))
                    runs[tree]["warm"].append(measured(name, sources, finished, caches))
                print(name, time_ + 1, "of", asked.times, file=sys.stderr, flush=True)
            for tree, sources in trees.items():
                for row in rows_of(name, tree, commit_of(sources), runs[tree]):
                    print(json.dumps(row), flush=True)
                    written["starts"].append(row)
            if asked.out:
                asked.out.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
