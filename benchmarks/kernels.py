"""List the GPU kernels of a step by the time they take: python benchmarks/kernels.py [METHOD[+droptop] ...]

One seed as CUDA graphs: ResNet-18 of width 64, images of CIFAR-10's shape, batches of 32 + 32, memory of 500, probe of
64 samples, bf16.
"""

import collections
import sys

import torch
from torch.profiler import ProfilerActivity, profile

from droptop.bench.runner import LAP, Runner
from droptop.runs.build import build_stream
from droptop.runs.config import configure
from droptop.training.workers import prepare

SHOWN = 40
OPTIONS = {"width": 64, "stem": "3x3", "memory": 500, "augment": "crop-flip", "device": "cuda", "precision": "bf16"}


def print_kernels(method: str, arm: str) -> None:
    """Print the kernels of one arm with time and count per step, the longest first."""
    more = {"probe": 64} if arm == "droptop" else {}
    config = configure("fashion-sticker", method, arm, **OPTIONS, **more)
    runner = Runner(config, build_stream(config, 0), 0, "graphs")
    for _ in range(3):
        runner.queue()
        runner.read()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        runner.queue()
        runner.read()
    counts, times = collections.Counter[str](), collections.Counter[str]()
    for event in profiled.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            counts[event.name] += 1
            times[event.name] += event.device_time_total
    print(f"\n{method} {arm}: {counts.total() / LAP:.0f} kernels, {times.total() / LAP:.0f} us per step")
    for name, time in times.most_common(SHOWN):
        print(f"{time / LAP:8.1f} us {counts[name] / LAP:6.1f} x  {name[:150]}")


if __name__ == "__main__":
    prepare("cuda", deterministic=False, precision="bf16")
    for name in sys.argv[1:] or ["er", "er+droptop", "mir", "gss"]:
        print_kernels(name.split("+")[0], "droptop" if "+" in name else "none")
