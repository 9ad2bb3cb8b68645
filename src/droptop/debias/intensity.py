"""Adaptive intensity shifting, Eq. 7-8 and Algorithm 2 of the DropTop paper: how much should be dropped?

Every class has its own kappa'. For a block of p steps the learner drops kappa' * alpha percent, for the next p steps
kappa' / alpha, and so on (Eq. 7). How much the loss of the class on the memory fell in a block goes into the history of
its direction, decrement or increment (Eq. 8). When both histories hold l entries, a one-sided t-test decides whether
one direction is better; kappa' then follows it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from droptop.errors import require

# Legend: N samples, G groups that share an intensity (the classes, or one for all), L history length,
# 2 = decrement, increment.


@dataclass(frozen=True)
class IntensityConfig:
    """Hold the settings of adaptive intensity shifting."""

    per: Literal["class", "common"] = "class"
    """One intensity per class, or one that all classes have in common."""
    alpha: float = 0.9
    """Factor by which kappa is multiplied or divided when it shifts."""
    period: int = 3
    """Steps for which each direction is tried (p)."""
    history: int = 10
    """Loss reductions of each direction that are collected before they are compared (l)."""
    significance: float = 0.05
    """p-value at or below which a direction counts as better."""
    shift: Literal["eq7", "algorithm2"] = "eq7"
    """Where the two candidates lie after a decision: on both sides of the new kappa (eq7), or from it onwards
    (algorithm2; at gamma, beyond which there is nothing, as eq7)."""
    p_counter: Literal["global", "task"] = "global"
    """Count the steps of a period over the whole stream (global), or anew in each task."""
    probe: int = 0
    """Memory samples on which the loss is measured; 0 means the whole memory."""
    reference: bool = False
    """Keep a second model for the larger candidate, as the paper does; this doubles the cost."""

    def __post_init__(self) -> None:
        require(0 < self.alpha < 1, "alpha", "a number between 0 and 1", self.alpha)
        require(self.period >= 1, "period", "a number of steps from 1", self.period)
        require(self.history >= 2, "history", "a number of entries from 2", self.history)
        require(0 < self.significance < 0.5, "significance", "a number between 0 and 0.5", self.significance)
        require(self.probe >= 0, "probe", "a number of samples from 1, or 0 for the whole memory", self.probe)


def group_losses(losses_N: Tensor, groups_N: Tensor, counted_N: Tensor, groups: int) -> Tensor:
    """Return the mean loss of each group (G) over the samples that count; NaN where a group has none."""
    sums = torch.zeros(groups, device=losses_N.device, dtype=losses_N.dtype)
    counts = torch.zeros_like(sums)
    sums.index_add_(0, groups_N, torch.where(counted_N, losses_N, 0))
    counts.index_add_(0, groups_N, counted_N.to(sums.dtype))
    return sums / counts


def random_keys(rows: int, generator: torch.Generator) -> Tensor:
    """Return a random key from 0 to 2^32 - 1 per row, no two the same.

    One number is drawn whatever the number of rows, and the key of a row depends on that number and the row alone. So a
    memory with empty rows and one without them give the same keys, and leave the generator in the same state.
    """
    salt = torch.randint(2**32, (1,), generator=generator, device=generator.device)
    keys = torch.arange(rows, device=generator.device) ^ salt
    for _ in range(2):  # a hash of 32 bits; each step can be undone, so that different rows stay different
        keys = ((keys >> 16) ^ keys) * 0x45D9F3B & 0xFFFFFFFF
    return (keys >> 16) ^ keys


def pooled_t(a_GL: Tensor, b_GL: Tensor) -> Tensor:
    """Compute Student's t for mean(a) > mean(b), as scipy's `ttest_ind(a, b, alternative="greater")` does."""
    length = a_GL.shape[-1]
    variance = (a_GL.var(-1) + b_GL.var(-1)) / 2
    return (a_GL.mean(-1) - b_GL.mean(-1)) / (variance * 2 / length).sqrt()


class Intensity(nn.Module):
    """Hold kappa' of every group and the evidence for changing it: only tensors, updated in place."""

    kappa: Tensor  # G: kappa', in percent of the map
    candidates: Tensor  # 2, G: kappa^dec and kappa^inc, which alternate
    direction: Tensor  # the one that is tried now: 0 decrement, 1 increment
    loss: Tensor  # 2, G: loss at the start of the block; NaN where the memory held no sample of the group
    history: Tensor  # 2, G, L: H^dec and H^inc, the latest loss reductions
    entries: Tensor  # 2, G: how many of these came after the last decision

    def __init__(self, config: IntensityConfig, groups: int, kappa_0: float, gamma: float) -> None:
        super().__init__()
        self.config, self.gamma = config, gamma
        # The degrees of freedom never change, so p <= significance is t >= one number, which scipy gives once.
        from scipy.special import stdtrit  # takes a fifth of a second to load, which other learners can do without

        self.critical = float(stdtrit(2 * config.history - 2, 1 - config.significance))
        kappa = torch.full((groups,), min(kappa_0, gamma), dtype=torch.float64)
        self.register_buffer("kappa", kappa)
        self.register_buffer("candidates", self.around(kappa))
        self.register_buffer("direction", torch.tensor(0))
        self.register_buffer("loss", torch.full((2, groups), torch.nan, dtype=torch.float64))
        self.register_buffer("history", torch.zeros(2, groups, config.history, dtype=torch.float64))
        self.register_buffer("entries", torch.zeros(2, groups, dtype=torch.int64))

    def around(self, kappa: Tensor) -> Tensor:
        """Return the candidates of Eq. 7 around kappa': one step down and one step up, at most gamma."""
        return torch.stack([kappa * self.config.alpha, kappa / self.config.alpha]).clamp(max=self.gamma)

    def group(self, labels: Tensor) -> Tensor:
        """Return the group of each label."""
        return labels if self.config.per == "class" else torch.zeros_like(labels)

    def current(self, labels_B: Tensor, direction: int | None = None) -> Tensor:
        """Return the percentage to drop per sample, in the direction that is tried now or in a given one."""
        down, up = self.candidates
        tried = torch.where(self.direction == 0, down, up) if direction is None else self.candidates[direction]
        return tried[self.group(labels_B)]

    def probed(self, held_N: Tensor, generator: torch.Generator) -> Tensor:
        """Draw the rows of the memory that the loss is measured on: `probe` of those that hold a sample.

        Where there are fewer, all of them come, and rows without a sample after them.
        """
        keys = torch.where(held_N, random_keys(len(held_N), generator), -1)
        return keys.topk(min(self.config.probe, len(held_N))).indices

    def mean_losses(self, logits: Iterable[Tensor], labels: Iterable[Tensor], counted_N: Tensor) -> Tensor:
        """Return the mean loss of each group (G) over memory samples, whose logits and labels come in parts."""
        parts = [
            (F.cross_entropy(some, y, reduction="none").to(self.kappa.dtype), self.group(y))
            for some, y in zip(logits, labels)
        ]
        empty = self.kappa[:0]
        losses_N = torch.cat([empty, *(losses for losses, _ in parts)])
        groups_N = torch.cat([empty.long(), *(groups for _, groups in parts)])
        return group_losses(losses_N, groups_N, counted_N, len(self.kappa))

    def record(self, losses: Tensor) -> None:
        """End a block: record how much the losses fell (Eq. 8), turn to the other direction, and decide if due.

        `losses` are the groups' (G), or (2, G) where each direction has its own model.
        """
        reduction = self.loss - losses
        self.loss.copy_(losses.expand_as(self.loss))
        tried = torch.arange(2, device=reduction.device)[:, None] == self.direction
        recorded = tried & reduction.isfinite()
        pushed = torch.cat([self.history[..., 1:], reduction[..., None]], dim=-1)
        self.history.copy_(torch.where(recorded[..., None], pushed, self.history))
        self.entries.copy_((self.entries + recorded).clamp(max=self.config.history))
        self.direction.copy_(1 - self.direction)
        self.decide()

    def decide(self) -> None:
        """Shift kappa' of every group whose histories are full to the better direction, if any, and clear these."""
        full = (self.entries == self.config.history).all(0)
        t = pooled_t(self.history[0], self.history[1])  # NaN (no variance, no difference) decides nothing
        decrease, increase = full & (t >= self.critical), full & (t <= -self.critical)
        down, up = self.candidates
        self.kappa.copy_(torch.where(decrease, down, torch.where(increase, up, self.kappa)))
        if self.config.shift == "eq7":
            self.candidates.copy_(self.around(self.kappa))
        else:
            onwards_down, onwards_up = down * self.config.alpha, (up / self.config.alpha).clamp(max=self.gamma)
            # At gamma there is no onwards: both candidates would be gamma, and chance alone would choose between them.
            kept_apart = torch.where(up < self.gamma, up, up * self.config.alpha)
            self.candidates.copy_(
                torch.where(
                    decrease,
                    torch.stack([onwards_down, down]),
                    torch.where(increase, torch.stack([kept_apart, onwards_up]), self.candidates),
                )
            )
        self.entries.masked_fill_(full, 0)
