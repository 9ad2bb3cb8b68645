"""The choice between our own GPU kernels and torch's; `Backbone.use_own_kernels` switches the layers that have both.

Our kernels take less time on the GPU than torch's, but launching them from Python takes more, so that they pay where
steps are captured and replayed. `training/` switches them on; in a user's own loop they are off.
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

        kernels.patches(torch.zeros(1, 1, 1, 1, device="cuda"), (1, 1), (1, 1), (0, 0))  # needs a C compiler
    except Exception as error:
        warnings.warn(f"torch's own kernels are used, since Triton does not work here: {error}", stacklevel=2)
        return None
    return kernels
