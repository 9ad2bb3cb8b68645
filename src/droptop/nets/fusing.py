"""Who gets our own GPU kernels: whoever asks for them, where Triton works.

They take less of a GPU's time than torch's, but more of Python's to be launched, so that they pay where steps are
captured and replayed. The engine asks for them; a loop of one's own gets torch's.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import torch

_wanted: ContextVar[bool] = ContextVar("fused kernels are wanted", default=False)


@contextmanager
def fusing(wanted: bool = True) -> Iterator[None]:
    """Within it, forward passes are by our own kernels where they can be."""
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


def kernels() -> Any:
    """The module of kernels, where they are wanted and Triton works; None else."""
    return _working() if _wanted.get() else None


@cache
def _working() -> Any:
    try:
        from droptop.nets import kernels

        kernels.patches(torch.zeros(1, 1, 1, 1, device="cuda"), (1, 1), (1, 1), (0, 0))  # wants a C compiler
    except Exception as error:
        warnings.warn(f"torch's own kernels are used, since Triton does not work here: {error}", stacklevel=2)
        return None
    return kernels
