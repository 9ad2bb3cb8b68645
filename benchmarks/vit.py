"""Measure a step of the prompt learners with ViT-B/16 at 224 px, against the arithmetic it needs.

    python benchmarks/vit.py [--out FILE.json] [--seeds 1,2] [--small]

The floor is a step's floating-point operations, counted by torch, at the rate of one large bfloat16 product measured
on the same device in the same run. Beside it: the plain training step of the same ViT, all weights, as a CUDA graph.
`--small` is for trying the script without a GPU.
"""

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from droptop.bench.runner import LAP, Runner, lap
from droptop.nets import ViTConfig, build, compute_in
from droptop.runs.build import build_stream
from droptop.runs.config import Config, configure
from droptop.runs.environment import environment
from droptop.training.workers import prepare

BASE = {"patch": 16, "width": 768, "depth": 12, "input_size": 224}
ARMS: tuple[tuple[str, dict[str, int]], ...] = (("none", {}), ("droptop", {}), ("droptop", {"probe": 64}))
SMALL = {"patch": 16, "width": 64, "depth": 6, "input_size": 32}


def peak(device: str) -> float:
    """Return the operations per second of a large product in bfloat16."""
    side, times = (8192, 20) if device == "cuda" else (512, 2)
    a, b = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))
    return 2 * side**3 / seconds(lambda: a @ b, device, times)


def seconds(work: Callable[[], Any], device: str, times: int) -> float:
    """Return the seconds per call of some work: the best of three means."""

    def once() -> float:
        wait(device)
        started = time.perf_counter()
        for _ in range(times):
            work()
        wait(device)
        return (time.perf_counter() - started) / times

    work()
    return min(once() for _ in range(3))


def wait(device: str) -> None:
    """Wait for all that a GPU has queued."""
    if device == "cuda":
        torch.cuda.synchronize()


class Untracked(nullcontext):
    """Replace the counter's own tracking of modules, which fails on prefixes that need a gradient."""

    parents = {"Global"}


def operations(work: Callable[[], Any]) -> int:
    """Return the floating-point operations of some work."""
    counter = FlopCounterMode(display=False)
    counter.mod_tracker = Untracked()
    with counter:
        work()
    return counter.get_total_flops()


def plain(shape: dict[str, int], device: str, batch: int, compiled: bool) -> dict[str, float]:
    """Return operations and milliseconds of a forward and backward pass of all weights, as a CUDA graph on a GPU."""
    size = shape["input_size"]
    model = build(ViTConfig(**shape), 3, 10, 0, "random").to(device)
    compute_in(model, (3, size, size), "bf16", compiled)
    x, y = torch.randn(batch, 3, size, size, device=device), torch.zeros(batch, dtype=torch.int64, device=device)
    weights = list(model.parameters())

    def step() -> None:
        torch.autograd.grad(F.cross_entropy(model(x), y), weights)

    step()
    flops = 0 if compiled else operations(step)
    if device == "cuda":
        with torch.cuda.stream(torch.cuda.Stream()):
            step()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
        return {"flops": flops, "ms": 1000 * seconds(graph.replay, device, 10)}
    return {"flops": flops, "ms": 1000 * seconds(step, device, 1)}


def learner(config: Config, seeds: int, laps: int) -> dict[str, float]:
    """Return operations and milliseconds per step of a learner, with a step's share of the probes."""
    engine = "graphs" if config.options.device == "cuda" else "eager"
    stream = build_stream(config, 0)
    runners = [Runner(config, stream, seed, engine) for seed in range(seeds)]
    first = runners[0].steps.learner
    clock = dict(first.clock)
    x = torch.zeros(32, *first.spec.shape, dtype=first.spec.dtype, device=first.device)
    y = torch.zeros(32, dtype=torch.int64, device=first.device)
    flops = 0
    if not config.options.compile:  # a compiled net has the same operations, but they cannot be counted
        first.enter(0)
        flops = operations(lambda: first.step(x, y))
        if first.debias is not None and first.debias.adapts:
            flops += operations(first.probe) // first.debias.config.intensity.period
        first.clock = clock
    lap(runners)
    times = [1000 * lap(runners) / LAP / seeds for _ in range(laps)]
    return {"flops": flops, "ms": statistics.fmean(times), "ms_error": statistics.stdev(times) / len(times) ** 0.5}


def main() -> None:
    """Print the table and, with --out, write it as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    prepare(device, deterministic=False, precision="bf16")
    shape, rate = SMALL if arguments.small else BASE, peak(device)
    print(f"one large bf16 product: {rate / 1e12:.0f} TFLOP/s")
    rows: list[dict[str, Any]] = []
    for compiled in (False, True) if device == "cuda" else (False,):
        about = {"what": "plain ViT, forward and backward of 64", "seeds": 1, "compiled": compiled}
        rows.append(about | plain(shape, device, 64, compiled))
        for method, (arm, more) in itertools.product(("l2p", "dualprompt"), ARMS):
            options = {"device": device, "precision": "bf16", "weights": "random", "augment": "none"}
            config = configure("fashion-sticker", method, arm, compile=compiled, **options, **shape, **more)
            for seeds in map(int, arguments.seeds.split(",")):
                what = f"{method} + {arm}{', probe of 64' if more else ''}"
                about = {"what": what, "seeds": seeds, "compiled": compiled}
                rows.append(about | learner(config, seeds, 3 if device == "cuda" else 2))
    print(
        f"{'a step of 32 + 32':40}{'seeds':>6}{'compiled':>10}{'TFLOP':>8}{'floor ms':>10}{'ms':>9}{'ms / floor':>12}"
        f"{'/ plain':>9}"
    )
    flops = {row["what"]: row["flops"] for row in rows if not row["compiled"]}
    for row in rows:
        row["flops"] = flops[row["what"]]
        row["floor_ms"] = 1000 * row["flops"] / rate
        print(
            f"{row['what']:40}{row['seeds']:6}{row['compiled']!s:>10}{row['flops'] / 1e12:8.2f}"
            f"{row['floor_ms']:10.2f}{row['ms']:9.2f}{row['ms'] / row['floor_ms']:12.2f}"
            f"{row['ms'] / rows[0]['ms']:9.2f}"
        )
    if arguments.out:
        machine = environment(device, torch.get_num_threads())
        content = {"shape": shape, "rate": rate, "environment": machine, "rows": rows}
        arguments.out.write_text(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
