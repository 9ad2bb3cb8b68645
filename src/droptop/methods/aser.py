"""ASER: adversarial Shapley value experience replay (Shim et al., 2021). Values samples by how they classify others.

The value of a sample for another one is its KNN Shapley value (Jia et al., 2019; k = 3, Euclidean distance between
pooled features). Once the memory is full, retrieval prefers samples that help to classify the memory (cooperative)
and mislead on the stream (adversarial), and the update keeps samples that help on both. Images are unmasked and
unaugmented, BatchNorm in eval mode. There are max(1.5 per class, memory batch) candidates: with few classes all of
them are retrieved (10 classes and a memory batch of 32, say), and only the update differs from ER's.

The authors' code (RaptorMai/online-continual-learning) makes 1 of 1.5 per class. Once the memory is full it has one
candidate of every class that the memory holds, and replays no more than these: at most 10 rows with 10 classes, and
only 2 in a first task of 2. `--sampling published` does so. Its steps have rows in place of those that are absent, so
that all have one shape: these weigh nothing, and are spread over the rows that count, whose share in BatchNorm's
statistics they keep.

Cost of a step beyond ER's: two forwards, each of the stream batch, the candidates and the samples they are valued by.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from droptop.errors import require
from droptop.learner import Joined, Learner, LearnerConfig
from droptop.memory import Rows, balanced_draw, draw_per_class, first_free_slots
from droptop.nets import evaluating

# Samples by which candidates are valued at once: of 1,000 classes there are 1,500, and as many candidates.
AT_ONCE = 512


@dataclass(frozen=True)
class ASERConfig(LearnerConfig):
    """Hold the settings of ASER."""

    neighbours: int = 3
    """Number of neighbours (k) of the nearest-neighbour Shapley value."""
    per_class: float = 1.5
    """Samples per class, on average, by which candidates are valued."""
    sampling: Literal["filled", "published"] = "filled"
    """Take as many candidates as fill the memory batch (filled), or floor(per_class) per class and no more, as the
    authors' code does (published)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sampling == "published":
            require(self.per_class >= 1, "sampling", "filled with --per-class below 1", self.sampling)
            joint = self.replay_forward == "joint"
            require(joint, "sampling", "filled with --replay-forward separate", self.sampling)
        require(self.neighbours >= 1, "neighbours", "a number from 1", self.neighbours)
        require(0 < self.per_class < float("inf"), "per_class", "a number above 0", self.per_class)


def knn_shapley(
    features: Tensor, labels: Tensor, candidates: Tensor, candidate_labels: Tensor, known: Tensor, k: int
) -> Tensor:
    """Return the Shapley value of N candidates (columns) for the k-NN classification of E samples (rows).

    From the farthest to the nearest, SV_j = SV_{j+1} + (m_j - m_{j+1}) min(k, j) / (k j), where m_j says whether the
    j-th nearest candidate has the sample's label. Candidates that are not `known` are farthest and match nothing.
    """
    distance = torch.cdist(features, candidates).masked_fill(~known, torch.inf)
    order = distance.argsort(dim=1, stable=True)
    match = ((candidate_labels[order] == labels[:, None]) & known[order]).to(features.dtype)
    j = torch.arange(1, len(candidates) + 1, device=features.device)
    steps = (match - F.pad(match[:, 1:], (0, 1))) * (j.clamp(max=k) / (k * j))
    by_distance = steps.flip(1).cumsum(1).flip(1)
    return torch.empty_like(by_distance).scatter_(1, order, by_distance)


def mean_value(
    features: Tensor,
    labels: Tensor,
    counted: Tensor,
    candidates: Tensor,
    candidate_labels: Tensor,
    known: Tensor,
    k: int,
) -> Tensor:
    """Return the mean Shapley value of each candidate over the samples that count."""
    total = torch.zeros(len(candidates), device=features.device, dtype=features.dtype)
    for some, of_some, count in zip(features.split(AT_ONCE), labels.split(AT_ONCE), counted.split(AT_ONCE)):
        values = knn_shapley(some, of_some, candidates, candidate_labels, known, k)
        total += (values * count[:, None]).sum(0)
    return total / counted.sum().clamp(min=1)


def take_places(leaves: Tensor, slots: Tensor, none: int) -> Tensor:
    """Return a slot for each newcomer; `none` where it is not kept or no slot is free.

    `leaves` says which samples are not kept: first the old ones, which are in `slots`, then the newcomers. The n-th
    newcomer that is kept takes the n-th slot that an old one leaves.
    """
    old, new = leaves[: len(slots)], leaves[len(slots) :]
    left = torch.where(old, slots, none)[(~old).long().argsort(stable=True)]
    left = F.pad(left, (0, max(0, len(new) - len(left))), value=none)
    turn = (~new).cumsum(0) - 1
    return torch.where(new, none, left[turn.clamp(min=0)])


def standing_in(there: Tensor, stream: int) -> Tensor:
    """Return the row of a joint batch that each replayed row is: itself where it is there, else one that counts.

    Rows are numbered from the stream's, all of which count. Those that stand in are spread evenly over what counts.
    """
    counts = F.pad(there, (stream, 0), value=True)
    counting = (~counts).long().argsort(stable=True)  # the rows that count come first
    turn, absent = (~there).cumsum(0) - 1, (~there).sum().clamp(min=1)
    spread = counting[turn.clamp(min=0) * counts.sum() // absent]
    return torch.where(there, torch.arange(stream, len(counts), device=there.device), spread)


class ASER(Learner):
    """ER with retrieval and update by Shapley value."""

    config: ASERConfig
    config_type = ASERConfig
    paper = {"kappa_0": 0.5}

    @property
    def judges(self) -> int:
        """Return the number of memory samples by which candidates are valued."""
        total = self.config.per_class * len(self.spec.classes)
        return math.ceil(total) if self.config.sampling == "filled" else int(total)

    def draw_balanced(self, *counts: int) -> list[tuple[Tensor, Tensor]]:
        """Draw disjoint parts of the memory, of so many samples each; return their slots, and which hold a sample.

        `published` sampling draws floor(per_class) of every class for each part instead.
        """
        random = self.random["memory"]
        if self.config.sampling == "filled":
            slots, there = balanced_draw(self.memory, sum(counts), random)
            return list(zip(slots.split(counts), there.split(counts)))
        each = int(self.config.per_class)
        slots, there = draw_per_class(self.memory, len(self.spec.classes), each * len(counts), random)
        return [(a.flatten(), b.flatten()) for a, b in zip(slots.split(each, 1), there.split(each, 1))]

    def retrieve(self, stream: Rows) -> Rows:
        """Draw at random until the memory is full, then take the highest cooperative minus adversarial values."""
        batch, k = self.config.memory_batch, self.config.neighbours
        (slots, known), (judge_slots, judging) = self.draw_balanced(max(self.judges, batch), self.judges)
        candidates, judges = self.memory.read(slots), self.memory.read(judge_slots)
        of_judges, of_stream, of_candidates = self.features(judges["x"], stream["x"], candidates["x"])
        everyone = torch.ones_like(stream["y"], dtype=torch.bool)
        cooperative = mean_value(of_judges, judges["y"], judging, of_candidates, candidates["y"], known, k)
        adversarial = mean_value(of_stream, stream["y"], everyone, of_candidates, candidates["y"], known, k)
        value = torch.where(known, cooperative - adversarial, -torch.inf)
        best = F.pad(value.topk(min(batch, len(value))).indices, (0, max(0, batch - len(value))), value=-1)
        full = self.memory.size == self.memory.capacity
        usable = known[best] & (best >= 0) & full
        drawn = super().retrieve(stream)
        there = drawn.pop("there")
        rows = {
            name: torch.where(usable.view(-1, *[1] * (rows.dim() - 1)), candidates[name][best], rows)
            for name, rows in drawn.items()
        }
        if self.config.sampling == "filled":
            return rows
        there = torch.where(full, usable, there)
        source = standing_in(there, len(stream["y"]))
        return {name: torch.cat([stream[name], column])[source] for name, column in rows.items()} | {"there": there}

    def loss(self, logits: Tensor, batch: Joined) -> Tensor:
        """Return the mean cross-entropy over the rows that count: all of them but for those that stand in."""
        if "there" not in batch.replayed:
            return super().loss(logits, batch)
        counts = F.pad(batch.replayed["there"].float(), (batch.stream, 0), value=1.0)
        return (F.cross_entropy(logits, batch.y, reduction="none") * counts).sum() / counts.sum()

    def remember(self, stream: Rows) -> None:
        """Fill the memory; then, of some memory samples and the rest of the batch, keep those of the highest value.

        They are valued by a class-balanced panel of other memory samples, and by the batch's samples of scarce classes.
        """
        memory, batch = self.memory, len(stream["y"])
        free = first_free_slots(memory, batch)
        memory.write(torch.where(self.finite, free, memory.capacity), stream)
        left = free == memory.capacity
        judging_too = left & self.scarce(stream["y"])
        [(panel_slots, sitting)] = self.draw_balanced(self.judges)
        rival_slots, held = memory.draw(self.judges, self.random["memory"], but=panel_slots)
        panel, rivals = memory.read(panel_slots), memory.read(rival_slots)
        of_panel, of_stream, of_rivals = self.features(panel["x"], stream["x"], rivals["x"])
        labels, known = torch.cat([rivals["y"], stream["y"]]), torch.cat([held, left])
        value = mean_value(
            torch.cat([of_panel, of_stream]),
            torch.cat([panel["y"], stream["y"]]),
            torch.cat([sitting, judging_too]),
            torch.cat([of_rivals, of_stream]),
            labels,
            known,
            self.config.neighbours,
        )
        rank = torch.where(known, value, torch.inf).argsort(stable=True).argsort()
        leaves = (rank < left.sum()) | F.pad(~left, (len(held), 0))
        slots = take_places(leaves, torch.where(held, rival_slots, memory.capacity), memory.capacity)
        memory.write(torch.where(self.finite, slots, memory.capacity), stream)

    def scarce(self, labels: Tensor) -> Tensor:
        """Return whether each class has fewer samples in the memory than a random share, at most capacity / classes."""
        share = torch.rand((), generator=self.random["memory"], device=labels.device) / len(self.spec.classes)
        counts = torch.zeros_like(self.seen, dtype=torch.int64)
        counts.index_add_(0, self.memory.rows["y"][:-1], self.memory.filled().long())
        return counts[labels] < share * self.memory.capacity

    def features(self, *parts: Tensor) -> tuple[Tensor, ...]:
        """Return the pooled features of parts of images, computed in one forward pass."""
        with evaluating(self.model):
            pooled = self.model.features(self.normalise(torch.cat(parts))).pooled
        return pooled.split([len(part) for part in parts])
