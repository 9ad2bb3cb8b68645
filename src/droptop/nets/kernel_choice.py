"""Our own GPU kernels or torch's: a switch of every backbone and of its layers that have both.

Our kernels take less of a GPU's time than torch's, but more of Python's to be launched, so that they pay where steps
are captured and replayed. `training/` switches them on; in a loop of one's own they are off.
"""

import warnings
from functools import cache
from typing import Any

import torch


@cache
def own_kernels() -> Any:
    """Return the module of our kernels, or None (with a warning, once) where Triton does not work."""
    try:
        from droptop.nets import kernels

        kernels.patches(torch.zeros(1, 1, 1, 1, device="cuda"), (1, 1), (1, 1), (0, 0))  # wants a C compiler
    except Exception as error:
        warnings.warn(f"torch's own kernels are used, since Triton does not work here: {error}", stacklevel=2)
        return None
    return kernels
