"""ASER (Shim et al., 2021): samples are worth what they do for a k-nearest-neighbour classifier of others.

Retrieval, once the memory is full: of some candidates, those of the highest cooperative minus adversarial value. They
are cooperative where they help to classify other memory samples (the judges), adversarial where they help with the
stream. Update of a full memory: samples of the stream compete with some of the memory for as many places, valued by
a panel of other memory samples and by the stream's own samples of scarce classes. Features are those of unmasked,
unaugmented images, BatchNorm in eval mode.

Values tie often: neighbours of the same class are worth the same. Among equals, and only there, this learner follows
what droptop's chose.
"""

import math

import pytest
import torch
from torch import Tensor

from .slow import CLASSES, Row, SlowLearner, agree, batches, fast


def shapley_values(judge: Row, candidates: list[Row], k: int) -> list[float]:
    """The value of each candidate for the k-NN classification of a judge: theorem 1 of Jia et al. (2019)."""
    order = sorted(
        range(len(candidates)), key=lambda place: (judge["feature"] - candidates[place]["feature"]).norm().item()
    )
    values, value, farther = [0.0] * len(candidates), 0.0, 0
    for j in range(len(candidates), 0, -1):  # from the farthest to the nearest
        match = int(candidates[order[j - 1]]["y"] == judge["y"])
        value += (match - farther) / k * min(k, j) / j
        values[order[j - 1]], farther = value, match
    return values


def place_among(images: Tensor, image: Tensor) -> int:
    return next((place for place, other in enumerate(images) if torch.equal(other, image)), len(images))


class SlowASER(SlowLearner):
    retrieved_by_value, competitions, scarce_judges = 0, 0, 0

    @property
    def judges(self) -> int:
        return math.ceil(self.config.per_class * CLASSES)

    def balanced_draw(self, count: int) -> list[int]:
        """Draw slots of a sample per class in turn: rounds in random order, classes in random order in each of them."""
        random, memory = self.random["memory"], self.config.memory
        keys, within_round = (torch.rand(memory, generator=random, dtype=torch.float32).tolist() for _ in range(2))
        rounds: list[tuple[int, float, int]] = []
        for label in range(CLASSES):
            slots = [slot for slot, row in enumerate(self.memory) if row["y"] == label]
            for turn, slot in enumerate(sorted(slots, key=lambda slot: keys[slot])):
                rounds.append((turn, within_round[slot], slot))
        return [slot for _, _, slot in sorted(rounds)[:count]]

    def with_features(self, rows: list[Row]) -> list[Row]:
        with torch.no_grad():
            first = [self.nets[0].stem(self.normalise(row["x"])[None], "running") for row in rows]
            return [row | {"feature": self.nets[0].trunk(one, "running")[1][0]} for row, one in zip(rows, first)]

    def mean_values(self, judges: list[Row], candidates: list[Row]) -> list[float]:
        by_judge = [shapley_values(judge, candidates, self.config.neighbours) for judge in judges]
        return [sum(values) / max(1, len(judges)) for values in zip(*by_judge)] or [0.0] * len(candidates)

    def retrieve(self, arrived: list[Row]) -> list[Row]:
        count = max(self.judges, self.config.memory_batch)
        slots = self.balanced_draw(count + self.judges)
        candidates = self.with_features([self.memory[slot] for slot in slots[:count]])
        judges = self.with_features([self.memory[slot] for slot in slots[count:]])
        rows = super().retrieve(arrived)
        if len(self.memory) == self.config.memory:
            cooperative = self.mean_values(judges, candidates)
            adversarial = self.mean_values(self.with_features(arrived), candidates)
            value = [a - b for a, b in zip(cooperative, adversarial)]
            taken = self.hints["replayed"][len(self.replayed)]
            order = sorted(
                range(len(candidates)),
                key=lambda place: (-round(value[place], 9), place_among(taken, candidates[place]["x"])),
            )
            best = order[: self.config.memory_batch]
            rows = [candidates[place] for place in best] + rows[len(best) :]
            self.retrieved_by_value += 1
        return rows

    def remember(self, arrived: list[Row]) -> None:
        room = self.config.memory - len(self.memory)
        self.memory += arrived[:room]
        left = arrived[room:]
        share = torch.rand((), generator=self.random["memory"]).item() / CLASSES
        panel = self.balanced_draw(self.judges)
        rivals = self.draw(self.judges, but=panel)
        if not left:
            return
        labels = [row["y"] for row in self.memory]
        scarce = [row for row in left if labels.count(row["y"]) < share * self.config.memory]
        judges = self.with_features([self.memory[slot] for slot in panel] + scarce)
        candidates = self.with_features([self.memory[slot] for slot in rivals] + left)
        value = self.mean_values(judges, candidates)
        stays = self.hints["kept"]
        order = sorted(
            range(len(candidates)),
            key=lambda place: (round(value[place], 9), place_among(stays, candidates[place]["x"]) < len(stays)),
        )
        leaves = set(order[: len(left)])
        places = [slot for place, slot in enumerate(rivals) if place in leaves]
        kept = [row for place, row in enumerate(left, len(rivals)) if place not in leaves]
        for slot, row in zip(places, kept, strict=True):
            self.memory[slot] = row
        self.competitions += len(kept)
        self.scarce_judges += len(scarce)


@pytest.mark.parametrize("options", [{}, {"neighbours": 2, "per_class": 0.5}, {"memory": 30, "per_class": 2.2}])
def test_aser(options):
    learner = fast("aser", **{"memory": 16, "memory_batch": 3} | options)
    slow = SlowASER(learner)
    agree(learner, slow, batches(14))
    assert slow.retrieved_by_value > 0
    assert slow.competitions > 0
    assert slow.scarce_judges > 0


def test_aser_with_droptop():
    """Features are not masked."""
    learner = fast("aser", {}, memory=16, memory_batch=3, augment="none")
    agree(learner, SlowASER(learner), batches(8))
