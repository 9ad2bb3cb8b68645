"""DropTop, the debiasing layer, with its parts as plain functions and its settings.

fusion.py       Eq. 4: attention from the first and the last map
mask.py         Eq. 5-6: the mask that drops the cells of highest attention
intensity.py    Eq. 7-8, Algorithm 2: how many cells, by class, adapted while training
droptop.py      the layer that joins them
attach.py       the layer in any model and any training loop
"""

from droptop.debias.droptop import DEBIAS, DropTop, DropTopConfig, Trace, check_last_map
from droptop.debias.fusion import fuse, last_only
from droptop.debias.intensity import Intensity, IntensityConfig, group_losses, pooled_t
from droptop.debias.mask import apply_mask, cell_counts, drop_mask

__all__ = [
    "DEBIAS",
    "DropTop",
    "DropTopConfig",
    "Intensity",
    "IntensityConfig",
    "Trace",
    "apply_mask",
    "cell_counts",
    "check_last_map",
    "drop_mask",
    "fuse",
    "group_losses",
    "last_only",
    "pooled_t",
]
