"""DropTop, the debiasing layer (Kim et al., AAAI-24), between the stem and the trunk of a backbone.

    first = model.stem(x)
    first = debias(first, last=lambda: last_map(model, first), labels=y)
    logits = model.head(model.trunk(first))

Eq. 4 is in `fusion.py`, Eq. 5-6 in `mask.py`, Eq. 7-8 in `intensity.py`.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from droptop.debias.debiaser import Debiaser, View
from droptop.debias.fusion import fuse, last_only
from droptop.debias.intensity import Intensity, IntensityConfig
from droptop.debias.mask import Rounding, apply_mask, cell_counts, drop_mask
from droptop.errors import BadRequest, require
from droptop.nets.backbone import AttentionNorm
from droptop.system.devices import widest


@dataclass(frozen=True)
class DropTopConfig:
    """Hold the settings of the debiasing layer."""

    gamma: float = 5.0
    """Percent of the first map dropped in all."""
    kappa_0: float = 5.0
    """Intensity at the start: percent of the first map that is dropped by attention, at most gamma. The rest of gamma
    is dropped at random."""
    drop: Literal["adaptive", "top", "constant", "random"] = "adaptive"
    """How the intensity kappa goes on from there: adaptive changes it (DropTop), top keeps it at gamma (the ablation
    "Fixed Drop"), constant keeps it at kappa_0, random keeps it at 0 ("Rand Drop")."""
    attention: Literal["fused", "last"] = "fused"
    """Score cells by both maps (fused, Eq. 4), or by the last map alone (last, the ablation "No MF")."""
    attention_norm: AttentionNorm = "batch"
    """What BatchNorm normalises by in the attention pass: the batch, or its running statistics."""
    memory_attention: Literal["fresh", "kept"] = "fresh"
    """Attention of memory samples: computed at each replay (fresh), or as it was when they came with the stream (kept),
    also where augmentation then moved them in another way. Kept, half of the attention pass is saved."""
    mask: Literal["hard", "soft"] = "hard"
    """Drop the cells of highest score (hard, Eq. 5), or weaken them by rank (soft, appendix E)."""
    mask_rows: Literal["all", "stream", "memory"] = "all"
    """Samples of a training batch that are masked: all, those of the stream, or those from the memory."""
    remainder: Literal["random", "none"] = "random"
    """What is dropped beyond kappa: gamma - kappa percent at random, or none."""
    rounding: Rounding = "stochastic"
    """How a percentage becomes a whole number of cells: stochastic is right on average, nearest is always the same."""
    intensity: IntensityConfig = field(default_factory=IntensityConfig)

    @property
    def start(self) -> float:
        """Return the kappa that training starts with: kappa_0, at most gamma."""
        return min(self.kappa_0, self.gamma)

    def with_effective_kappa_0(self) -> "DropTopConfig":
        """Return these settings with the kappa_0 that training really starts with."""
        return replace(self, kappa_0=self.start)

    def check_kappa_0(self, usual: "DropTopConfig") -> None:
        """Raise BadRequest if the user set a kappa_0 above gamma; `usual` has the default, which gamma may cut.

        This is not in `__post_init__`, since the folders of older runs hold such settings.
        """
        require(
            self.kappa_0 in (self.start, usual.kappa_0),
            "kappa_0",
            f"a percentage up to gamma, {self.gamma}",
            self.kappa_0,
        )

    def __post_init__(self) -> None:
        require(0 <= self.gamma <= 100, "gamma", "a percentage from 0 to 100", self.gamma)
        require(0 <= self.kappa_0 <= 100, "kappa_0", "a percentage from 0 to 100", self.kappa_0)
        require(
            self.drop == "adaptive" or not self.intensity.reference,
            "reference",
            "--drop adaptive beside it",
            f"--drop {self.drop}",
        )
        for name, other in (("reference", self.intensity.reference), ("drop random", self.drop == "random")):
            require(
                self.memory_attention == "fresh" or not other,
                "memory_attention",
                f"fresh beside --{name}",
                self.memory_attention,
            )
        require(
            self.drop != "random" or self.remainder == "random",
            "remainder",
            "random with --drop random, which drops nothing else",
            self.remainder,
        )


class Trace(NamedTuple):
    """Hold what the layer did to the last batch, for reports; B, h, w each."""

    attention: Tensor
    mask: Tensor


def check_last_map(config: DropTopConfig, cells: int, instead: str) -> None:
    """Warn if the last map has one cell, so that fusion does nothing; raise BadRequest if it alone gives the scores.

    `instead` says what the user can do about it.
    """
    if cells == 1 and config.attention == "last":
        raise BadRequest(f"--attention last takes a last map larger than 1 x 1: {instead}")
    if cells == 1:
        warnings.warn(f"the last map is 1 x 1, so that fusion does nothing: {instead}", stacklevel=4)


class DropTop(Debiaser):
    """Drop the cells of the first map that the model attends to most; how many, depends on the class.

    Args:
        config: The settings of the layer.
        classes: Number of classes.
        generator: Draws the layer's random numbers; on the device of the maps.
    """

    config: DropTopConfig
    config_type = DropTopConfig
    last: Trace  # of the last batch
    of_stream: Tensor  # the attention of the stream's rows in it

    def __init__(self, config: DropTopConfig, classes: int, generator: torch.Generator) -> None:
        super().__init__(config, classes, generator)
        kappa = {"top": config.gamma, "random": 0.0}.get(config.drop, config.start)
        groups = classes if config.intensity.per == "class" else 1
        self.intensity = Intensity(config.intensity, groups, kappa, config.gamma)

    def __repr__(self) -> str:
        """Return its settings and the range of its intensities, in two lines."""
        low, high = self.intensity.kappa.aminmax()
        count = self.intensity.kappa.numel()
        return f"{super().__repr__()}\n  {count} intensities, kappa {float(low):.3g} to {float(high):.3g}"

    @property
    def adapts(self) -> bool:
        """Return whether intensities are adapted while training: one that starts at 0 stays there."""
        return self.config.drop == "adaptive" and self.config.start > 0

    @property
    def attention_pass(self) -> AttentionNorm | None:
        """Return what BatchNorm normalises by in the attention pass; None where no cell is chosen by attention."""
        return None if self.config.drop == "random" else self.config.attention_norm

    def kappa(self, labels: Tensor, direction: int | None) -> Tensor:
        """Return the percentage to drop by attention per sample, in the direction tried now or in a given one."""
        if self.adapts:
            return self.intensity.current(labels, direction)
        return self.intensity.kappa[self.intensity.group(labels)]

    def attend(self, first: Tensor, last: Callable[..., Tensor], noise: Tensor, known_M: Tensor | None) -> Tensor:
        """Return the attention of all rows (B, h, w), by which cells are chosen.

        Where that of the memory's rows is known, only the stream's are looked at. Rows of which nothing was kept take
        their noise for attention, and so lose cells at random.
        """
        if not self.attention_pass:
            return torch.zeros_like(noise)
        if known_M is None:
            return self.score(first, last())
        stream = len(first) - len(known_M)
        of_memory = torch.where(known_M.flatten(1).any(1)[:, None, None], known_M, noise[stream:])
        return torch.cat([self.score(first[:stream], last(stream)), of_memory]) if stream else of_memory

    def score(self, first: Tensor, last: Tensor) -> Tensor:
        """Compute attention (B, h, w), by which cells are chosen: Eq. 4, or the ablation "No MF"."""
        return (fuse if self.config.attention == "fused" else last_only)(first, last)

    def mask(self, attention: Tensor, kappa: Tensor, uniform: Tensor, noise: Tensor) -> Tensor:
        """Make the drop mask (B, h, w) of samples with intensities `kappa` (B) from given random numbers: Eq. 5."""
        cells, rounding = attention.shape[-2:].numel(), self.config.rounding
        top = cell_counts(kappa, cells, uniform, rounding)
        gamma = torch.full_like(uniform, self.config.gamma, dtype=widest(uniform.device))
        total = cell_counts(gamma, cells, uniform, rounding) if self.config.remainder == "random" else top
        most = math.floor(self.config.gamma * cells / 100 + 1)  # kappa is at most gamma, and a fraction rounds up
        return drop_mask(attention, top, total, noise, self.config.mask == "soft", most)

    def of_masked_rows(self, mask: Tensor, stream: int | None) -> Tensor:
        """Return the mask with all cells kept in rows that `mask_rows` leaves out; the stream's come first."""
        if self.config.mask_rows == "all":
            return mask
        if stream is None:
            raise BadRequest(f"--mask-rows takes all where nobody knows the memory's rows, not {self.config.mask_rows}")
        is_stream = torch.arange(len(mask), device=mask.device) < stream
        masked = is_stream if self.config.mask_rows == "stream" else ~is_stream
        return torch.where(masked[:, None, None], mask, 1)

    def forward(
        self,
        first: Tensor,
        last: Callable[..., Tensor],
        labels: Tensor,
        direction: int | None = None,
        stream: int | None = None,
        known_M: Tensor | None = None,
    ) -> Tensor:
        """Apply the drop mask to the first map.

        Args:
            first: The first map (B, c, h, w).
            last: Gives the last map of the same batch, unmasked; not called where no cell is chosen by attention.
            labels: The classes of the samples (B).
            direction: 0 takes the decremented intensities, 1 the incremented ones, None those that are tried now.
            stream: Rows of the stream, which come first; None where unknown.
            known_M: The attention of the memory's rows, where it was kept; `last` is then asked of the stream's alone.

        Returns:
            The masked first map (Eq. 6).
        """
        samples, _, height, width = first.shape
        uniform = torch.rand(samples, generator=self.generator, device=first.device)
        noise = torch.rand(samples, height, width, generator=self.generator, device=first.device)
        attention = self.attend(first.detach(), last, noise, known_M)
        mask = self.of_masked_rows(self.mask(attention, self.kappa(labels, direction), uniform, noise), stream)
        self.last = Trace(attention, mask)
        return apply_mask(first, mask)

    def first_map(self, first: Tensor, view: View, labels: Tensor, direction: int | None = None) -> Tensor:
        stream = view.stream
        known_M = view.rows["attention"][stream:] if self.keeps and stream is not None else None
        changed = self(first, view.last, labels, direction, stream, known_M)
        if stream:
            self.of_stream = self.last.attention[:stream]
        return changed

    # -- What the memory keeps of a sample ---------------------------------------------------------------------------

    @property
    def keeps(self) -> bool:
        return self.config.memory_attention == "kept"

    def columns(self, first: Tensor) -> dict[str, Tensor]:
        return {"attention": torch.zeros(first.shape[-2:])} if self.keeps else {}

    def kept(self) -> dict[str, Tensor]:
        return {"attention": self.of_stream} if self.keeps else {}
