"""The GPU kernels of a step, by the time they take: python benchmarks/kernels.py [METHOD[+droptop] ...]

One seed, ResNet-18 of width 64 on images of CIFAR-10's shape, 32 + 32, memory 500, probe of 64, bf16, as CUDA graphs.
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


def kernels(method: str, arm: str) -> None:
    more = {"probe": 64} if arm == "droptop" else {}
    config = configure(
        "fashion-sticker",
        method,
        arm,
        width=64,
        stem="3x3",
        memory=500,
        augment="crop-flip",
        device="cuda",
        precision="bf16",
        **more,
    )
    runner = Runner(config, build_stream(config, 0), 0, "graphs")
    for _ in range(3):
        runner.queue()
        runner.read()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        runner.queue()
        runner.read()
    counts, times = collections.Counter[str](), collections.Counter[str]()
    for event in seen.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            counts[event.name] += 1
            times[event.name] += event.device_time_total
    print(f"\n{method} {arm}: {counts.total() / LAP:.0f} kernels, {times.total() / LAP:.0f} us a step")
    for name, time in times.most_common(SHOWN):
        print(f"{time / LAP:8.1f} us {counts[name] / LAP:6.1f} x  {name[:150]}")


if __name__ == "__main__":
    prepare("cuda", deterministic=False)
    for wanted in sys.argv[1:] or ["er", "er+droptop", "mir", "gss"]:
        kernels(wanted.split("+")[0], "droptop" if "+" in wanted else "none")
