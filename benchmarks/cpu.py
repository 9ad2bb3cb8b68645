"""Measure the CPU seconds of a step: a plain loop, ER, poe, and DropTop in its dearer and cheaper forms.

    python benchmarks/cpu.py --out benchmarks/cpu/steps.json [--laps 20] [--width 64 --stem 3x3]

One thread. It is CPU time, not the clock's, and the arms take turns, a lap each, so that a busy machine slows all of
them alike. Passes are counted as in `droptop compare`: images forward and backward, forward alone as a third.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch

from droptop.bench.costs import passes_of
from droptop.bench.runner import LAP, Runner
from droptop.bench.step_times import PlainRunner, summed_up
from droptop.results.statistics import estimate
from droptop.runs.build import build_stream
from droptop.runs.config import configure
from droptop.runs.environment import environment
from droptop.training.workers import prepare

DATA = "fashion-sticker"


class Arm(NamedTuple):
    """Name an arm and its options; an arm without options is the plain loop."""

    name: str
    debias: str = "none"
    options: dict[str, Any] | None = None


ARMS = (
    Arm("plain loop"),
    Arm("ER", options={}),  # the arm that the others are compared with, turn by turn
    Arm("ER in bf16", options={"precision": "bf16"}),
    Arm("poe", "poe", {}),
    Arm("DropTop", "droptop", {}),
    Arm("DropTop, probe of 64", "droptop", {"probe": 64}),
    Arm("DropTop, kept attention", "droptop", {"memory_attention": "kept"}),
    Arm("DropTop, kept attention, probe of 64", "droptop", {"memory_attention": "kept", "probe": 64}),
    Arm("DropTop, fixed intensity, kept attention", "fixed", {"memory_attention": "kept"}),
)


ER = 1


class Steps(Protocol):
    """Take a lap of steps when told to, and wait for it."""

    def queue(self) -> None: ...

    def read(self) -> None: ...


def steps_of(arm: Arm, net: dict[str, Any]) -> tuple[Steps, float | None]:
    """Return what takes the steps of an arm, with its memory full, and the passes of a step."""
    config = configure(DATA, "er", arm.debias, **net, **(arm.options or {}))
    if arm.options is None:
        return PlainRunner(config), None
    return Runner(config, build_stream(config, 0), 0, "eager"), passes_of(config)


def lap_ms(steps: Steps) -> float:
    """Return the milliseconds of CPU time that a step takes, over a lap."""
    started = time.process_time()
    steps.queue()
    steps.read()
    return 1000 * (time.process_time() - started) / LAP


def main() -> None:
    """Print a line per arm and write them all as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--laps", type=int, default=20)
    parser.add_argument("--width", type=int)
    parser.add_argument("--stem")
    given = parser.parse_args()
    prepare("cpu", deterministic=False, precision="fp32")
    torch.set_num_threads(1)
    net = {name: value for name in ("width", "stem") if (value := getattr(given, name)) is not None}
    runners = [steps_of(arm, net) for arm in ARMS]
    for steps, _ in runners:
        lap_ms(steps)  # the first steps choose algorithms and allocate
    turns = [[lap_ms(steps) for steps, _ in runners] for _ in range(given.laps)]
    rows = []
    for place, (arm, (_, passes)) in enumerate(zip(ARMS, runners)):
        times_er, error, _ = estimate([turn[place] / turn[ER] for turn in turns])
        about = {"what": arm.name, "debias": arm.debias, "seeds": 1, "laps": given.laps}
        if passes is not None:
            about["passes"] = passes
        about |= {"times_er": times_er, "times_er_error": error}
        rows.append(about | summed_up([turn[place] for turn in turns]))
        print(f"{arm.name:42}{rows[-1]['ms']:9.2f} ms, {times_er:.3f} ± {error:.3f} times ER")
    content = {"options": {"data": DATA} | net, "environment": environment("cpu", 1), "rows": rows}
    given.out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
