"""The debiasing layer, its parts as plain functions, and its settings."""

from droptop.debias.droptop import DEBIAS, DropTop, DropTopConfig, Trace, check_last_map
from droptop.debias.fusion import fuse, last_only
from droptop.debias.intensity import Intensity, IntensityConfig, group_losses, pooled_t
from droptop.debias.mask import cell_counts, drop_mask

__all__ = [
    "DEBIAS",
    "DropTop",
    "DropTopConfig",
    "Intensity",
    "IntensityConfig",
    "Trace",
    "cell_counts",
    "check_last_map",
    "drop_mask",
    "fuse",
    "group_losses",
    "last_only",
    "pooled_t",
]
