"""Measure parts of ER's step with many seeds at once, by leaving them out: python benchmarks/parts.py [SEEDS ...]

Kernels of several seeds run at the same time, so a profile of one seed does not say what a step would gain without
some of them. Nothing sensible is learned here: only the time counts. ResNet-18 of width 64 on images of CIFAR-10's
shape, batches of 32 + 32, memory of 500, bf16, as CUDA graphs; the least of 8 laps.
"""

import gc
import sys
from contextlib import AbstractContextManager, ExitStack
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from droptop import nets
from droptop.bench.runner import LAP, Runner, lap
from droptop.nets import precision
from droptop.nets.norm import Norm
from droptop.optim import SGD
from droptop.runs.build import build_stream
from droptop.runs.config import configure
from droptop.training.workers import prepare

Patch = AbstractContextManager[object]
build = nets.build
DEVICE = "cuda"


def kept_in_bf16(*args: object) -> nets.Backbone:
    """Return a model with bf16 weights: nothing to cast, and half the bytes for norm and optimiser."""
    model = build(*args)  # type: ignore[arg-type]
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.bfloat16()
    return model


def wide_stem(*args: object) -> nets.Backbone:
    """Return a model that pads images to 8 channels, as matrix units prefer them."""
    model = build(*args)  # type: ignore[arg-type]
    conv = model.conv1
    assert isinstance(conv, nn.Conv2d)

    def forward(x: Tensor) -> Tensor:
        x, weight = (F.pad(part, (0, 0, 0, 0, 0, 5)) for part in (x.to(conv.weight.dtype), conv.weight))
        last = torch.channels_last
        return F.conv2d(
            x.contiguous(memory_format=last), weight.contiguous(memory_format=last), None, conv.stride, conv.padding
        )

    vars(conv)["forward"] = forward
    return model


def added(_: Norm, x: Tensor, add: Tensor | None = None) -> Tensor:
    """Return the sum alone, in place of BatchNorm and ReLU."""
    return x if add is None else x + add


LAYERS = torch.autocast(DEVICE, torch.bfloat16)(precision._layers)
CASTS: tuple[Patch, ...] = (
    patch.object(nets, "build", kept_in_bf16),
    patch.object(precision, "_layers", LAYERS),
    patch.object(precision._CastAll, "apply", lambda *weights: weights),
)
NORMS: tuple[Patch, ...] = (patch.object(Norm, "relu", added), patch.object(Norm, "forward", added))
SGDS: tuple[Patch, ...] = (patch.object(SGD, "step", lambda _: None),)
PARTS: dict[str, tuple[Patch, ...]] = {
    "all of it": (),
    "stem of 8 channels": (patch.object(nets, "build", wide_stem),),
    "weights kept in bf16": CASTS,
    "without BatchNorm and ReLU": NORMS,
    "without both and SGD": (*CASTS, *NORMS, *SGDS),
}


def times(patches: tuple[Patch, ...], counts: list[int]) -> list[float]:
    """Return milliseconds per step and seed, for each number of seeds at once, with parts patched out."""
    sizes = {"width": 64, "stem": "3x3", "memory": 500}
    config = configure("fashion-sticker", "er", "none", augment="crop-flip", device=DEVICE, precision="bf16", **sizes)
    stream, runners, least = build_stream(config, 0), list[Runner](), []
    with ExitStack() as stack:
        for part in patches:
            stack.enter_context(part)
        for count in counts:
            runners += [Runner(config, stream, seed, "graphs") for seed in range(len(runners), count)]
            laps = [1000 * lap(runners) / LAP / count for _ in range(10)]
            least.append(min(laps[2:]))
    return least


if __name__ == "__main__":
    counts = [int(count) for count in sys.argv[1:]] or [1, 10]
    prepare(DEVICE, deterministic=False, precision="bf16")
    print("ms per step and seed, with " + " and ".join(map(str, counts)) + " seeds at once")
    for name, patches in PARTS.items():
        print(f"{name:30s}" + "".join(f"{time:8.3f}" for time in times(patches, counts)), flush=True)
        gc.collect()
        torch.cuda.empty_cache()
