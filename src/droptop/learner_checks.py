"""What a learner refuses: images and labels that do not fit its spec."""

from torch import Tensor

from droptop import array_checks
from droptop.errors import BadBatch
from droptop.types import Spec


def check_images(spec: Spec, x: Tensor, on_gpu: bool = False) -> None:
    """Raise BadBatch if images are not a tensor of the spec's shape and dtype, or hold what no image has.

    The values of images on a GPU are read only if `on_gpu` says so, since that waits for it.
    """
    array_checks.check_images(x, spec.shape, spec.dtype, on_gpu)
    array_checks.check_unit_range(x)


def check_batch(spec: Spec, x: Tensor, y: Tensor) -> None:
    """Raise BadBatch if a batch is empty, its images or labels do not fit the spec, or a pixel is not finite.

    Values are read from a GPU, too: it is asked about the loss of this batch in any case.
    """
    check_images(spec, x, on_gpu=True)
    if len(x) == 0:
        raise BadBatch("a batch must hold one image at least")
    array_checks.check_labels(y, len(x), len(spec.classes), on_gpu=True)
