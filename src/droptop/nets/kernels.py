"""GPU kernels by Triton: BatchNorm with an addend and ReLU, two forward and two back (`norm.py`), and the patches that
a convolution sees (`gradients.py`).

torch has a kernel each for statistics, their update, normalising, adding and ReLU: in a step of ER with ResNet-18 these
take as long as the convolutions. Here a map is read twice forward (moments, then everything else) and twice back.

A map is a matrix of rows (samples and positions) by channels, as it lies in memory, channels last. Sums over its rows
are made in parts, one per program; the program that ends last adds the parts up, always in the same order. (The file is
long because ruff writes one argument of a kernel per line.)
"""

# Legend: x what is normalised, y what comes out, g the gradient of y where ReLU let it through, else 0.

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

TILE = 4096  # numbers per tile
WIDEST = 64  # most channels per tile
MOST = 128  # most parts per sum
WARPS = 4
MOST_CHANNELS = 2**16

_COUNTERS: dict[tuple[torch.device, int], Tensor] = {}  # by CUDA stream: parts finished so far, per block of channels


@triton.jit
def _last_one(partial, counter, first, second, c, channels, parts):
    """Store this program's part of two sums; return whether it is the last program that sums these channels."""
    at = partial + tl.program_id(1) * 2 * channels + c
    tl.store(at, tl.sum(first, 0), mask=c < channels)
    tl.store(at + channels, tl.sum(second, 0), mask=c < channels)
    tl.debug_barrier()  # what all of its threads stored comes before the count
    return tl.atomic_add(counter + tl.program_id(0), 1) == parts - 1


@triton.jit
def _total(partial, which, c, channels, parts, MOST: tl.constexpr):
    """Add up all parts of one of two sums, read past the first cache, which other programs' stores do not reach."""
    k = tl.arange(0, MOST)[:, None]
    at = partial + (2 * k + which) * channels + c[None, :]
    mask = (k < parts) & (c < channels)[None, :]
    return tl.sum(tl.load(at, mask=mask, other=0, cache_modifier=".cg"), 0)


@triton.jit
def _moments(
    x,
    partial,
    counter,
    mean,
    scale,
    running_mean,
    running_var,
    rows,
    channels,
    part,
    parts,
    eps,
    momentum,
    TRACK: tl.constexpr,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
    MOST: tl.constexpr,
):
    """Compute mean and 1 / standard deviation of every channel, and update the running statistics."""
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    valid = c < channels
    # Relative to the first row, so that the difference of two large numbers is never taken.
    origin = tl.load(x + c, mask=valid, other=0).to(tl.float32)
    sums, squares = tl.zeros((ROWS, CHANNELS), tl.float32), tl.zeros((ROWS, CHANNELS), tl.float32)
    first = tl.program_id(1) * part
    last = tl.minimum(first + part, rows)
    for start in range(first, last, ROWS):
        r = start + tl.arange(0, ROWS)
        mask = (r < last)[:, None] & valid[None, :]
        value = tl.load(x + r.to(tl.int64)[:, None] * channels + c[None, :], mask=mask, other=0).to(tl.float32)
        value = tl.where(mask, value - origin[None, :], 0)
        sums += value
        squares += value * value
    if _last_one(partial, counter, sums, squares, c, channels, parts):
        offset = _total(partial, 0, c, channels, parts, MOST) / rows
        square = _total(partial, 1, c, channels, parts, MOST) / rows
        center, variance = origin + offset, tl.maximum(square - offset * offset, 0)
        tl.store(mean + c, center, mask=valid)
        tl.store(scale + c, 1 / tl.sqrt(variance + eps), mask=valid)
        if TRACK:
            unbiased = variance * (rows / (rows - 1))
            before = tl.load(running_mean + c, mask=valid)
            tl.store(running_mean + c, before + momentum * (center - before), mask=valid)
            before = tl.load(running_var + c, mask=valid)
            tl.store(running_var + c, before + momentum * (unbiased - before), mask=valid)
        tl.store(counter + tl.program_id(0), 0)


@triton.jit
def _normalise(
    x,
    add,
    y,
    mean,
    scale,
    weight,
    bias,
    rows,
    channels,
    eps,
    BATCH: tl.constexpr,
    RELU: tl.constexpr,
    ADD: tl.constexpr,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Compute y = relu((x - mean) * scale * weight + bias + add); without BATCH, `scale` is a variance."""
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    valid = c < channels
    mask = (r < rows)[:, None] & valid[None, :]
    at = r.to(tl.int64)[:, None] * channels + c[None, :]
    inverse = tl.load(scale + c, mask=valid, other=1)
    if not BATCH:
        inverse = 1 / tl.sqrt(inverse + eps)
    slope = inverse * tl.load(weight + c, mask=valid, other=0)
    level = tl.load(bias + c, mask=valid, other=0) - tl.load(mean + c, mask=valid, other=0) * slope
    value = tl.load(x + at, mask=mask, other=0).to(tl.float32) * slope[None, :] + level[None, :]
    if ADD:
        value += tl.load(add + at, mask=mask, other=0).to(tl.float32)
    if RELU:
        value = tl.where(value < 0, 0, value)  # NaN stays NaN
    tl.store(y + at, value.to(y.dtype.element_ty), mask=mask)


@triton.jit
def _through(g, value, y, at, mask, slope, level, RELU: tl.constexpr, ADD: tl.constexpr):
    """Return the gradient where ReLU was positive, judged by its output or, if nothing was added, by its input."""
    if RELU:
        if ADD:
            g = tl.where(tl.load(y + at, mask=mask, other=0).to(tl.float32) > 0, g, 0)
        else:
            g = tl.where(value * slope[None, :] + level[None, :] > 0, g, 0)
    return g


@triton.jit
def _sums(
    gradient,
    x,
    y,
    passed,
    partial,
    counter,
    mean,
    scale,
    weight,
    bias,
    of_weight,
    of_bias,
    rows,
    channels,
    part,
    parts,
    RELU: tl.constexpr,
    ADD: tl.constexpr,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
    MOST: tl.constexpr,
):
    """Compute the gradients of weight and bias; with an addend also its gradient, g, which the next kernel reads."""
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    valid = c < channels
    center, inverse = tl.load(mean + c, mask=valid, other=0), tl.load(scale + c, mask=valid, other=0)
    slope = inverse * tl.load(weight + c, mask=valid, other=0)
    level = tl.load(bias + c, mask=valid, other=0) - center * slope
    sums, products = tl.zeros((ROWS, CHANNELS), tl.float32), tl.zeros((ROWS, CHANNELS), tl.float32)
    first = tl.program_id(1) * part
    last = tl.minimum(first + part, rows)
    for start in range(first, last, ROWS):
        r = start + tl.arange(0, ROWS)
        mask = (r < last)[:, None] & valid[None, :]
        at = r.to(tl.int64)[:, None] * channels + c[None, :]
        value = tl.load(x + at, mask=mask, other=0).to(tl.float32)
        g = tl.load(gradient + at, mask=mask, other=0).to(tl.float32)
        g = _through(g, value, y, at, mask, slope, level, RELU, ADD)
        if ADD:
            tl.store(passed + at, g.to(passed.dtype.element_ty), mask=mask)
        sums += g
        products += g * (value - center[None, :])
    if _last_one(partial, counter, sums, products, c, channels, parts):
        tl.store(of_bias + c, _total(partial, 0, c, channels, parts, MOST), mask=valid)
        tl.store(of_weight + c, _total(partial, 1, c, channels, parts, MOST) * inverse, mask=valid)
        tl.store(counter + tl.program_id(0), 0)


@triton.jit
def _back(
    gradient,
    x,
    of_x,
    mean,
    scale,
    weight,
    bias,
    of_weight,
    of_bias,
    rows,
    channels,
    RELU: tl.constexpr,
    BATCH: tl.constexpr,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Compute the gradient of x; with BATCH the statistics depend on x as well.

    of_x = scale * weight * (g - mean of g - normalised x * mean of (g * normalised x))
    """
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    valid = c < channels
    mask = (r < rows)[:, None] & valid[None, :]
    at = r.to(tl.int64)[:, None] * channels + c[None, :]
    center, inverse = tl.load(mean + c, mask=valid, other=0), tl.load(scale + c, mask=valid, other=0)
    slope = inverse * tl.load(weight + c, mask=valid, other=0)
    level = tl.load(bias + c, mask=valid, other=0) - center * slope
    value = tl.load(x + at, mask=mask, other=0).to(tl.float32)
    g = tl.load(gradient + at, mask=mask, other=0).to(tl.float32)
    g = _through(g, value, x, at, mask, slope, level, RELU, False)
    if BATCH:
        along = tl.load(of_weight + c, mask=valid, other=0) / rows * inverse
        g -= tl.load(of_bias + c, mask=valid, other=0)[None, :] / rows + (value - center[None, :]) * along[None, :]
    tl.store(of_x + at, (slope[None, :] * g).to(of_x.dtype.element_ty), mask=mask)


class Plan:
    """Cut a map into tiles, and sums over its rows into parts."""

    def __init__(self, x: Tensor) -> None:
        self.channels = x.shape[1]
        self.rows = x.numel() // self.channels
        wide = min(WIDEST, triton.next_power_of_2(self.channels))
        tall = TILE // wide
        self.blocks = triton.cdiv(self.channels, wide)
        self.part = triton.cdiv(triton.cdiv(self.rows, tall), MOST) * tall
        self.parts = triton.cdiv(self.rows, self.part)
        self.tiles = (triton.cdiv(self.rows, tall), self.blocks)  # of these axes only the first may be long
        self.options: dict[str, Any] = {"ROWS": tall, "CHANNELS": wide, "num_warps": WARPS}

    def scratch(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return memory for the parts of two sums, and counters of finished parts, which each kernel leaves at zero."""
        stream = torch.cuda.current_stream(x.device).stream_id if x.is_cuda else 0
        if (x.device, stream) not in _COUNTERS:
            _COUNTERS[x.device, stream] = torch.zeros(MOST_CHANNELS // WIDEST, dtype=torch.int32, device=x.device)
        return x.new_empty(self.parts * 2 * self.channels, dtype=torch.float32), _COUNTERS[x.device, stream]


class NormAddReLU(torch.autograd.Function):
    """Compute relu(norm(x) + add); the addend and ReLU are optional."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        add: Tensor | None,
        running_mean: Tensor,
        running_var: Tensor,
        batch: bool,
        track: bool,
        momentum: float,
        eps: float,
        relu: bool,
    ) -> Tensor:
        plan, y = Plan(x), torch.empty_like(x)
        mean, scale = (torch.empty_like(weight), torch.empty_like(weight)) if batch else (running_mean, running_var)
        with torch.cuda.device_of(x):
            if batch:
                _moments[plan.blocks, plan.parts](
                    x,
                    *plan.scratch(x),
                    mean,
                    scale,
                    running_mean,
                    running_var,
                    plan.rows,
                    plan.channels,
                    plan.part,
                    plan.parts,
                    eps,
                    momentum,
                    TRACK=track,
                    MOST=MOST,
                    **plan.options,
                )
            _normalise[plan.tiles](
                x,
                x if add is None else add,
                y,
                mean,
                scale,
                weight,
                bias,
                plan.rows,
                plan.channels,
                eps,
                BATCH=batch,
                RELU=relu,
                ADD=add is not None,
                **plan.options,
            )
        ctx.save_for_backward(x, weight, bias, mean, scale, *(() if add is None else (y,)))
        ctx.batch, ctx.relu, ctx.eps = batch, relu, eps
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, mean, scale, *added = ctx.saved_tensors
        if not ctx.batch:
            scale = torch.rsqrt(scale + ctx.eps)
        plan, gradient = Plan(x), gradient.contiguous(memory_format=torch.channels_last)
        y, passed = (added[0], torch.empty_like(x)) if added else (x, gradient)
        of_weight, of_bias, of_x = torch.empty_like(weight), torch.empty_like(bias), torch.empty_like(x)
        with torch.cuda.device_of(x):
            _sums[plan.blocks, plan.parts](
                gradient,
                x,
                y,
                passed,
                *plan.scratch(x),
                mean,
                scale,
                weight,
                bias,
                of_weight,
                of_bias,
                plan.rows,
                plan.channels,
                plan.part,
                plan.parts,
                RELU=ctx.relu,
                ADD=bool(added),
                MOST=MOST,
                **plan.options,
            )
            _back[plan.tiles](
                passed,
                x,
                of_x,
                mean,
                scale,
                weight,
                bias,
                of_weight,
                of_bias,
                plan.rows,
                plan.channels,
                RELU=ctx.relu and not added,
                BATCH=ctx.batch,
                **plan.options,
            )
        return of_x, of_weight, of_bias, passed if added else None, *[None] * 7


# -- What a convolution sees -------------------------------------------------------------------------------------------


@triton.jit
def _patches(
    x,
    out,
    rows,
    channels,
    height,
    width,
    high,
    wide,
    offsets,
    across,
    down,
    along,
    top,
    side,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Copy what one number of the kernel sees, for a tile of positions and channels."""
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    offset, position = tl.program_id(2), r % (high * wide)
    v = position // wide * down + offset // across - top
    u = position % wide * along + offset % across - side
    valid = (r < rows)[:, None] & (c < channels)[None, :]
    inside = valid & ((v >= 0) & (v < height) & (u >= 0) & (u < width))[:, None]
    pixel = (r // (high * wide)).to(tl.int64) * height * width + v * width + u
    value = tl.load(x + pixel[:, None] * channels + c[None, :], mask=inside, other=0)
    tl.store(out + (r.to(tl.int64) * offsets + offset)[:, None] * channels + c[None, :], value, mask=valid)


def patches(x: Tensor, kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...]) -> Tensor:
    """Return rows, positions, (i, j, c): what a kernel of i x j sees of c channels at each position."""
    x = x.contiguous(memory_format=torch.channels_last)
    samples, channels, height, width = x.shape
    high, across = (
        ((size + 2 * pad - side) // step + 1) for size, pad, side, step in zip((height, width), padding, kernel, stride)
    )
    rows, offsets, wide = samples * high * across, kernel[0] * kernel[1], min(WIDEST, triton.next_power_of_2(channels))
    out = x.new_empty(samples, high * across, offsets * channels)
    with torch.cuda.device_of(x):
        _patches[triton.cdiv(rows, TILE // wide), triton.cdiv(channels, wide), offsets](
            x,
            out,
            rows,
            channels,
            height,
            width,
            high,
            across,
            offsets,
            kernel[1],
            *stride,
            *padding,
            ROWS=TILE // wide,
            CHANNELS=wide,
            num_warps=WARPS,
        )
    return out
