"""Checks of the arrays that a user hands over: their kind, shape, type, range and device.

Every other module asks here, so that an array which does not fit is refused in the same words wherever it is handed
over. Each function takes `what` the array is called, and raises BadBatch in one line that says what was expected and
how to get it. Values are read from arrays on the host alone, unless a function says otherwise: to read them from a GPU
would make the host wait for it.
"""

from typing import Any

import torch
from torch import Tensor

from droptop.errors import BadBatch

OVERSHOOT = 0.25  # how far interpolation and jitter may leave the scale from 0 to 1
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def check_tensor(values: Any, what: str) -> None:
    """Raise BadBatch for anything but a dense tensor."""
    if not isinstance(values, Tensor):
        hint = "" if values is None else ": torch.as_tensor makes one"
        raise BadBatch(f"{what} must be a tensor, not {type(values).__name__}{hint}")
    if values.layout != torch.strided:
        raise BadBatch(f"{what} must be a dense tensor, not {values.layout}: to_dense() makes one")


def shape_of(values: Tensor) -> str:
    """Return the shape of a tensor as text: (4, 3, 16, 16)."""
    return str(tuple(values.shape))


def known(values: Tensor, on_gpu: bool) -> bool:
    """Return whether values can be read: there are some, and they are on the host or `on_gpu` does not matter."""
    return values.numel() > 0 and (on_gpu or values.device.type == "cpu")


# -- Images -----------------------------------------------------------------------------------------------------------


def check_images(
    x: Any,
    shape: tuple[int, ...] | None = None,
    dtype: torch.dtype | None = None,
    on_gpu: bool = False,
    what: str = "images",
) -> None:
    """Raise BadBatch unless these are images (N, channels, height, width), bytes or finite floating point.

    Where it is known, they have the `shape` of an image and a `dtype`. `on_gpu` reads values from a GPU, too.
    """
    check_tensor(x, what)
    if dtype is not None and x.dtype != dtype:
        raise BadBatch(f"{what} must be {dtype}, not {x.dtype}")
    if x.dtype != torch.uint8 and not x.is_floating_point():
        raise BadBatch(f"{what} must be torch.uint8 from 0 to 255 or floating point from 0 to 1, not {x.dtype}")
    if x.dim() != 4 or (shape is not None and x.shape[1:] != shape):
        sides = ", ".join(map(str, shape or ("channels", "height", "width")))
        raise BadBatch(f"{what} must have shape (batch, {sides}), not {shape_of(x)}")
    check_finite(x, what, on_gpu)


def check_finite(x: Tensor, what: str, on_gpu: bool = False) -> None:
    """Raise BadBatch if a value is NaN or infinite."""
    if x.is_floating_point() and known(x, on_gpu) and not all(edge.isfinite() for edge in x.detach().aminmax()):
        raise BadBatch(f"{what} must be finite: these hold NaN or infinity")


def check_unit_range(x: Tensor, what: str = "images") -> None:
    """Raise BadBatch for bytes in floating point: whole numbers from 0 to 255, of which some are above 1.

    Other values outside of 0 to 1 are images that somebody has normalised.
    """
    if x.is_floating_point() and known(x, on_gpu=False):
        low, high = x.detach().aminmax()
        if low >= 0 and 1 < high <= 255 and torch.equal(x, x.round()):
            raise BadBatch(
                f"{what} of floating point lie in 0 to 1, and these are whole numbers up to {high:.0f}: "
                "divide them by 255, or hand them over as torch.uint8"
            )


def check_augmented(x: Any, what: str = "images") -> None:
    """Raise BadBatch unless these are floating point images on a scale from 0 to 1, which are not yet normalised."""
    check_tensor(x, what)
    takes = f"{what} must be floating point from 0 to 1 (batch, channels, height, width)"
    if x.dim() != 4 or not x.is_floating_point():
        raise BadBatch(f"{takes}, not {shape_of(x)} of {x.dtype}")
    check_finite(x, what)
    if known(x, on_gpu=False):
        low, high = x.detach().aminmax()
        if low < -OVERSHOOT or high > 1 + OVERSHOOT:
            raise BadBatch(f"{takes}, ahead of what normalises them, not from {low:.3g} to {high:.3g}")


# -- Labels -----------------------------------------------------------------------------------------------------------


def check_labels(
    y: Any, count: int | None = None, classes: int | None = None, any_integer: bool = False, on_gpu: bool = False
) -> None:
    """Raise BadBatch unless these are labels: one int64 per sample (`count`), from 0 to classes - 1.

    With `any_integer`, of any integer type. `on_gpu` reads values from a GPU, too.
    """
    what = "labels"
    check_tensor(y, what)
    if y.dtype not in (INTEGERS if any_integer else (torch.int64,)):
        hint = ": y.long() makes them so" if y.dtype in INTEGERS else ""
        takes = "integers" if any_integer else "int64"
        raise BadBatch(f"{what} must be {takes}, not {y.dtype}{hint}")
    if y.dim() != 1:
        raise BadBatch(f"{what} must be one per sample, of shape (samples), not {shape_of(y)}")
    if count is not None and len(y) != count:
        raise BadBatch(f"images need a label each: there are {count} images and {len(y)} {what}")
    if classes is not None and known(y, on_gpu):
        low, high = y.aminmax()
        if low < 0 or high >= classes:
            raise BadBatch(f"{what} must lie in 0 to {classes - 1}, not {low} to {high}")


def check_losses(loss: Any, logits: Any, count: int, classes: int) -> None:
    """Raise BadBatch unless a loss is one number, and there is a row of logits per label (`count`), one per class."""
    for values, what in ((loss, "the loss"), (logits, "logits")):
        check_tensor(values, what)
        if not values.is_floating_point():
            raise BadBatch(f"{what} must be floating point, not {values.dtype}")
    if loss.numel() != 1:
        raise BadBatch(f"the loss must be one number, not {shape_of(loss)}: loss.mean() makes it one")
    if logits.dim() != 2 or len(logits) != count or logits.shape[1] < classes:  # the head may have room for others
        raise BadBatch(f"logits must have shape {(count, classes)}, a row per label, not {shape_of(logits)}")


# -- Maps -------------------------------------------------------------------------------------------------------------


def check_maps(first: Any, last: Any) -> None:
    """Raise BadBatch unless these are a first and a last map (B, channels, height, width) of the same samples."""
    for values, what in ((first, "the first map"), (last, "the last map")):
        check_tensor(values, what)
        if values.dim() != 4 or not values.is_floating_point():
            raise BadBatch(
                f"{what} must be floating point (batch, channels, height, width), not {shape_of(values)} of "
                f"{values.dtype}"
            )
    if len(first) != len(last):
        raise BadBatch(f"both maps are of the same samples: the first has {len(first)} of them, the last {len(last)}")


def check_mask_parts(attention: Any, top: Any, total: Any, noise: Any) -> None:
    """Raise BadBatch unless attention and noise have one shape (B, h, w), and both counts are B integers."""
    for values, what in ((attention, "attention"), (noise, "noise")):
        check_tensor(values, what)
        if values.dim() != 3 or not values.is_floating_point() or values.shape != attention.shape:
            raise BadBatch(
                "attention and noise must be floating point of one shape (batch, height, width), and this "
                f"{what} is {shape_of(values)} of {values.dtype}"
            )
    for values, what in ((top, "top"), (total, "total")):
        check_tensor(values, what)
        if values.shape != attention.shape[:1] or values.dtype not in INTEGERS:
            raise BadBatch(
                f"{what} must be {len(attention)} integers, cells per sample, not {shape_of(values)} of {values.dtype}"
            )
        if known(values, on_gpu=False) and not 0 <= values.min() <= values.max() <= attention[0].numel():
            raise BadBatch(f"{what} must lie in 0 to {attention[0].numel()}, the cells of a map")


# -- What else is known of samples ------------------------------------------------------------------------------------


def truths(values: Any, shape: tuple[int, ...], what: str, means: str) -> Tensor:
    """Return True or False per entry; numbers are taken if all are 0 or 1. Reads values from a GPU, too.

    `means` says what True means. Raise BadBatch for another shape or other numbers, which could be rows or strengths.
    """
    check_tensor(values, what)
    if tuple(values.shape) != shape:
        raise BadBatch(f"{what} must have shape {shape} ({means}), not {shape_of(values)}")
    if values.dtype == torch.bool:
        return values
    true = values == 1
    if not ((values == 0) | true).all():
        raise BadBatch(
            f"{what} must be True or False ({means}), and this {values.dtype} holds more than 0 and 1: "
            f"{what} > 0 makes it so"
        )
    return true


def check_codes(codes: Any, names: int) -> None:
    """Raise BadBatch unless these are the codes of groups: int64 (N), positions in `names` names. Reads a GPU, too."""
    check_tensor(codes, "codes of groups")
    if codes.dtype != torch.int64 or codes.dim() != 1:
        raise BadBatch(f"codes of groups must be int64 (samples), not {shape_of(codes)} of {codes.dtype}")
    if known(codes, on_gpu=True) and not 0 <= codes.min() <= codes.max() < names:
        raise BadBatch(f"codes of groups must lie in 0 to {names - 1}, not {codes.min()} to {codes.max()}")


def check_rows(rows: Any, count: int) -> None:
    """Raise BadBatch unless `count` samples are chosen from by a slice, by numbers, or by True or False for each."""
    if isinstance(rows, slice):
        return
    check_tensor(rows, "rows")
    if rows.dim() != 1 or rows.dtype not in (torch.bool, torch.int64, torch.int32):
        raise BadBatch(
            "rows are chosen by a tensor of their numbers (torch.int64) or of True and False (torch.bool), "
            f"not {shape_of(rows)} of {rows.dtype}"
        )
    if rows.dtype == torch.bool and len(rows) != count:
        raise BadBatch(f"rows chosen by True and False take one for each of {count} samples, not {len(rows)}")
    if rows.dtype != torch.bool and known(rows, on_gpu=False) and not -count <= rows.min() <= rows.max() < count:
        raise BadBatch(f"rows must lie in 0 to {count - 1}, not {rows.min()} to {rows.max()}")


def check_devices(columns: dict[str, Tensor]) -> None:
    """Raise BadBatch if columns of the same samples are on different devices."""
    (first, column), *others = columns.items()
    for name, other in others:
        if other.device != column.device:
            raise BadBatch(
                f"samples are on one device, and {first} is on {column.device}, {name} on {other.device}: "
                f"{name}.to({first}.device) moves it"
            )
