"""Measure how long a whole study takes on a GPU, against the time of its steps alone.

    python benchmarks/study.py photographs garments --out study.json
    python benchmarks/study.py photographs garments --rates 3 --out study.json
    python benchmarks/study.py photographs --rates 3 --profile profile.txt

photographs   208 cells of 344 steps at the shapes of `split-tiny-imagenet9`: 64 px, 8 classes, 9 test sets of 450
garments      432 cells of 375 small steps: `fashion-sticker` with its own net

A study is swept by the real command, in a new folder, from Enter to its end: 8 seeds of ER with and without DropTop at
so many learning rates (`--rates`, by default all). The seconds of its steps are those of 20 seeds at once in the middle
of their streams, as `droptop bench` has them. With another tree of the package on PYTHONPATH it measures that one.
`--profile` sweeps in this process instead, and writes where the host's time goes.
"""

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
import tempfile
import time
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import torch

import droptop
from droptop.bench.step_times import race
from droptop.runs.build import build_stream
from droptop.runs.config import configure
from droptop.runs.environment import environment
from droptop.sweeps.local import here, merged
from droptop.sweeps.sweep import sweep
from droptop.training.observer import Observer
from droptop.training.workers import prepare
from droptop.types import Samples, Spec

HERE = Path(__file__).resolve()
SPEC = Spec((3, 64, 64), tuple(f"class {number}" for number in range(8)))
ARMS, SEEDS, TOGETHER = ("none", "droptop"), 8, 20
STUDIES: dict[str, tuple[int, dict[str, Any]]] = {  # learning rates, and the options of all cells
    "photographs": (
        13,
        {"data": f"{HERE}:photographs", "width": 64, "stem": "7x7/2", "memory": 500, "augment": "crop-flip"},
    ),
    "garments": (27, {"data": "fashion-sticker"}),
}
COMMON = {"precision": "bf16", "probe": 64, "maps": 0, "device": "cuda"}


@cache
def noise(count: int, seed: int) -> Samples:
    """Return so many images of noise, the classes in turn."""
    random = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (count, *SPEC.shape), dtype=torch.uint8, generator=random)
    return Samples(images, torch.arange(count) % len(SPEC.classes))


def photographs(seed: int) -> droptop.Stream:
    """Return a stream with the shapes and numbers of `split-tiny-imagenet9`; its images are the same for all seeds."""
    tests = {f"test-{number}": noise(450, 1 + number) for number in range(9)}
    return droptop.Stream("photographs", SPEC, noise(11040, 0), tests, droptop.StreamConfig(tasks=4), seed)


def study_toml(options: dict[str, Any], rates: int) -> str:
    """Return the study of so many learning rates."""
    grid = {"debias": list(ARMS), "lr": [round(0.01 + number / 1000, 3) for number in range(rates)], "seeds": SEEDS}
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in (options | COMMON | grid).items())


def swept_seconds(options: dict[str, Any], rates: int, profile: Path | None) -> float:
    """Return how long the command sweeps a study, in a folder of its own; or profile that in this process."""
    with tempfile.TemporaryDirectory() as place:
        study, out = Path(place) / "study.toml", Path(place) / "out"
        study.write_text(study_toml(options, rates))
        started = time.perf_counter()
        if profile is None:
            command = [sys.executable, "-m", "droptop", "sweep", str(study), "--out", str(out), "--trust"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        else:
            configure(options["data"])  # names this file, which the study then may
            with cProfile.Profile() as taken:
                sweep(study, out, lambda packs, driver: here(merged(packs), driver, 1), Observer())  # type: ignore[arg-type]
            with profile.open("w") as file:
                pstats.Stats(taken, stream=file).sort_stats("cumulative").print_stats(120)
        return time.perf_counter() - started


def steps_seconds(options: dict[str, Any], rates: int) -> tuple[int, float]:
    """Return the number of steps of a study, and how long they take where nothing else is done."""
    prepare("cuda", deterministic=False, precision="bf16")
    known, total, steps = {name: value for name, value in options.items() if name != "data"}, 0.0, 0
    for arm in ARMS:
        more = COMMON if arm == "droptop" else {name: value for name, value in COMMON.items() if name != "probe"}
        config = configure(options["data"], "er", arm, **known, **more)
        [row] = race(config, "graphs", [TOGETHER], 60)
        count = rates * SEEDS * len(build_stream(config, 0))
        steps, total = steps + count, total + count * row["ms"] / 1000
    return steps, total


def main() -> None:
    """Measure the studies that are named; print a line for each, and add them to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="+", choices=STUDIES)
    parser.add_argument("--rates", type=int, help="learning rates, by default all")
    parser.add_argument("--parallel", type=int, help="seeds at once, by default as many as the command takes")
    parser.add_argument("--profile", type=Path, help="a file for the profile of a sweep in this process")
    parser.add_argument("--out", type=Path, help="a file of rows, to which these are added")
    asked = parser.parse_args()
    os.environ["DROPTOP_TRUSTED"] = f"{tempfile.mkdtemp()}/list"  # where this file is named as a stream
    rows = json.loads(asked.out.read_text()) if asked.out and asked.out.exists() else []
    for name in asked.studies:
        all_rates, options = STUDIES[name]
        rates, at_once = asked.rates or all_rates, {} if asked.parallel is None else {"parallel": asked.parallel}
        seconds = swept_seconds(options | at_once, rates, asked.profile)
        steps, alone = steps_seconds(options, rates)
        noted = environment("cuda", 1)
        row = {"study": name, "cells": len(ARMS) * rates * SEEDS, "steps": steps, "seconds": round(seconds, 1)}
        row |= {"steps_seconds": round(alone, 1), "times": round(seconds / alone, 2), "date": str(date.today())}
        rows.append(row | at_once | {name: noted.get(name) for name in ("device_name", "commit", "versions")})
        print(json.dumps(rows[-1]), flush=True)
        if asked.out:
            asked.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
