"""What a learner refuses: images and labels that do not fit its spec."""

import torch
from torch import Tensor

from droptop.errors import BadBatch
from droptop.types import Spec


def check_images(spec: Spec, x: Tensor) -> None:
    """Raise BadBatch if images are not a tensor of the spec's shape and dtype."""
    if not isinstance(x, Tensor):
        raise BadBatch(f"images must be a tensor, not {type(x).__name__}")
    if x.dtype != spec.dtype:
        raise BadBatch(f"images must be {spec.dtype}, not {x.dtype}")
    if x.dim() != 4 or x.shape[1:] != spec.shape:
        raise BadBatch(f"images must have shape (batch, {', '.join(map(str, spec.shape))}), not {tuple(x.shape)}")


def check_batch(spec: Spec, x: Tensor, y: Tensor) -> None:
    """Raise BadBatch if a batch is empty, its images or labels do not fit the spec, or a pixel is not finite."""
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        raise BadBatch(f"images and labels must be tensors, not {type(x).__name__} and {type(y).__name__}")
    check_images(spec, x)
    if len(x) == 0:
        raise BadBatch("a batch must hold one image at least")
    if y.dtype != torch.int64 or y.shape != x.shape[:1]:
        raise BadBatch(f"labels must be {len(x)} int64 values, not {tuple(y.shape)} of {y.dtype}")
    if y.min() < 0 or y.max() >= len(spec.classes):
        raise BadBatch(f"labels must lie in 0 to {len(spec.classes) - 1}, not {y.min()} to {y.max()}")
    if x.is_floating_point() and not x.isfinite().all():
        raise BadBatch("images must be finite: this batch holds NaN or infinity")
